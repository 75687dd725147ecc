#!/bin/sh
# SPDX-License-Identifier: MIT
# SynCord's policies on a real machine: loads that contend for one lock of the kernel each, without
# a policy and with some, in turn, within one boot.
#
# usage: ./run.sh [-r ROUNDS] [-s SECONDS] [-t "THREADS..."] [-l "LOADS..."] [-S SLOW] [-o FILE]
#
#   -r  rounds, default 5; each has every way of every load once, in a new random order
#   -s  seconds of a run, default 5
#   -t  numbers of threads, default 1, a quarter of the CPUs, half of them, all
#   -l  of mwrl (rename_lock), lock1 (a process's file_lock), scl (a file system's rename mutex);
#       default all
#   -S  CPUs that are slower than the others, as 8-15; default those that the kernel calls so
#   -o  where results are appended, default samples.jsonl
#
# On the kernel of this bundle, as root: "stock" is nothing attached, the others are policies.  On
# any other kernel all is "baseline".  So run it once in a boot of each, with the same -o, and then:
#   ./report samples.jsonl
# Threads are bound to CPUs, thread i to CPU i.  Nothing of the machine is changed; what is attached
# ends with its run, and with this script.
set -u
here=$(cd "$(dirname "$0")" && pwd)
syncord=/sys/kernel/syncord
rounds=5 seconds=5 threads='' loads='mwrl lock1 scl' slow='' result=samples.jsonl
cpus=$(nproc)

stop() { # WHAT: WHAT TO DO
	echo "run.sh: $1" >&2
	exit "${2:-1}"
}

number() { # OPTION VALUE
	case $2 in
	'' | 0 | *[!0-9]*) stop "-$1 '$2': give a number of 1 or more" 2 ;;
	esac
}

while getopts r:s:t:l:S:o: option; do
	case $option in
	r) rounds=$OPTARG ;;
	s) seconds=$OPTARG ;;
	t) threads=$OPTARG ;;
	l) loads=$OPTARG ;;
	S) slow=$OPTARG ;;
	o) result=$OPTARG ;;
	*) stop "see ./run.sh: usage is at its beginning" 2 ;;
	esac
done
number r "$rounds"
number s "$seconds"
for n in $threads; do number t "$n"; done
for load in $loads; do
	[ -x "$here/load/syncord-load-$load" ] || stop "-l '$load': give mwrl, lock1, scl" 2
done

boot=baseline
if [ -e $syncord/status ]; then
	boot=syncord
	[ "$(id -u)" = 0 ] || stop "attaching a policy takes root: run it by sudo"
	! grep -q '^policy' $syncord/status ||
		stop "a policy is attached already: flexguard kernel detach --all"
fi
if [ -z "$threads" ]; then
	threads=$(printf '%s\n' 1 $((cpus / 4)) $((cpus / 2)) "$cpus" | sort -n -u | sed '/^0$/d')
fi
[ -n "$slow" ] || slow=$(cat /sys/devices/cpu_atom/cpus 2>/dev/null)
nodes=$(find /sys/devices/system/node -maxdepth 1 -name 'node[0-9]*' 2>/dev/null | wc -l)
earlier=$(grep '"type": "context"' "$result" 2>/dev/null | tail -n 1)
case $earlier in
'' | *"\"host\": \"$(uname -n)\", "*"\"cpus\": $cpus, "*) ;;
*) stop "$result is of another machine: give another -o FILE" ;;
esac

# A tmpfs: no disk is measured.
tmp=$(mktemp -d) && place=$(mktemp -d /dev/shm/flexguard.XXXXXX 2>/dev/null || mktemp -d) || exit 1
running='' attached='' ended=''
finish() {
	exec 3>&-
	for pid in $running $attached; do kill "$pid" 2>/dev/null; done
	wait
	rm -rf "$tmp" "$place"
}
trap finish EXIT
trap 'ended=1' INT TERM
trap '' PIPE

# ---- what is measured: lines of LOAD WAY THREADS -----------------------------------------------

ways_of() { # LOAD
	[ $boot = syncord ] || { echo baseline; return; }
	echo stock
	case $1 in
	mwrl)
		[ "$nodes" -lt 2 ] || echo numa
		echo cohort
		echo lockstat-1
		echo lockstat-10
		[ -z "$slow" ] || echo amp
		;;
	lock1) [ "$nodes" -lt 2 ] && echo cohort || echo numa ;;
	scl) printf 'counted\nscl\n' ;;
	esac
}

policy_of() { # WAY: name and options
	case $1 in
	lockstat-1) echo "lockstat -o only=1" ;;
	lockstat-10) echo lockstat ;;
	amp) [ "$nodes" -lt 2 ] && echo "amp -o slow=$slow" || echo "numa+amp -o slow=$slow" ;;
	counted) echo "scl -o throttle=no" ;;
	scl) echo "scl -o max_wait_us=1000000" ;;
	*) echo "$1" ;;
	esac
}

target_of() { # LOAD PID
	case $1 in
	mwrl) echo rename_lock ;;
	lock1) echo "task:$2.files.file_lock" ;;
	scl) echo "sb:$place.s_vfs_rename_mutex" ;;
	esac
}

for load in $loads; do
	for way in $(ways_of "$load"); do
		for n in $threads; do
			# At most 16, of whom 8 make 10,000 folders each.
			[ "$load" != scl ] || n=$((n < 4 ? 4 : n > 16 ? 16 : n))
			echo "$load $way $n"
		done
	done
done | sort -u >"$tmp/jobs"
total=$(($(wc -l <"$tmp/jobs") * rounds))

# ---- one run -----------------------------------------------------------------------------------

until_said() { # WHAT FILE PID SECONDS: that the file has it, while the process lives
	tries=0
	until grep -q "$1" "$2"; do
		kill -0 "$3" 2>/dev/null || return 1
		[ $tries -lt $(($4 * 10)) ] && [ -z "$ended" ] || return 1
		tries=$((tries + 1))
		sleep 0.1
	done
}

attach() { # POLICY [OPTIONS] TARGET
	# By what it says, not by its pid: the kernel's are those of the first namespace.
	"$here/flexguard" kernel attach --json "$@" >"$tmp/attach" 2>&1 3>&- &
	attached=$!
	tries=0
	until grep -q '"event": "attached"' "$tmp/attach"; do
		kill -0 $attached 2>/dev/null && [ $tries -lt 100 ] || return 1
		tries=$((tries + 1))
		sleep 0.1
	done
}

why() { tail -n 1 "$1" | tr -d '"\\' | tr '\n\t' '  '; }

# Leaves in $raw what it has measured, or {"failed": why}.
measure() { # LOAD WAY THREADS
	raw='' status=null
	rm -f "$tmp/go"
	mkfifo "$tmp/go"
	: >"$tmp/said"
	"$here/load/syncord-load-$1" -w -f "$place" -t "$3" -d "$seconds" <"$tmp/go" >"$tmp/said" \
		2>"$tmp/wrong" &
	running=$!
	exec 3>"$tmp/go"
	if ! until_said ready "$tmp/said" $running 600; then
		raw="{\"failed\": \"the load has not begun: $(why "$tmp/wrong")\"}"
	elif [ "$2" != stock ] && [ "$2" != baseline ]; then
		# shellcheck disable=SC2046
		attach $(policy_of "$2") "$(target_of "$1" $running)" ||
			raw="{\"failed\": \"$2 is not attached: $(why "$tmp/attach")\"}"
	fi
	if [ -z "$raw" ]; then
		echo >&3
		if ! until_said acquisitions "$tmp/said" $running $((seconds + 600)); then
			raw="{\"failed\": \"the load has not ended: $(why "$tmp/wrong")\"}"
		elif [ -n "$attached" ] && ! kill -0 "$attached" 2>/dev/null; then
			raw="{\"failed\": \"$2 has ended: $(why "$tmp/attach")\"}"
		else
			[ -z "$attached" ] || status=$("$here/flexguard" kernel status --json)
			raw="{\"load\": $(tail -n 1 "$tmp/said"), \"status\": ${status:-null}}"
		fi
	fi
	# The policy first: its lock goes with the load.
	[ -z "$attached" ] || { kill "$attached" 2>/dev/null; wait "$attached"; }
	case $raw in '{"failed"'*) kill "$running" 2>/dev/null ;; esac
	exec 3>&-
	wait
	running='' attached=''
}

# ---- all of them -------------------------------------------------------------------------------

# user nice system idle iowait irq softirq steal, in ticks
cpu_times() { awk '/^cpu / {print $9, $2+$3+$4+$5+$6+$7+$8+$9; exit}' /proc/stat; }
json() { printf '%s' "$1" | tr -d '"\\' | tr '\n\t' '  '; }

began=$(date +%s)
model=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
{
	printf '{"type": "context", "bundle": "syncord", "boot": "%s", "host": "%s", ' \
		$boot "$(uname -n)"
	printf '"cpu": "%s", "cpus": %s, "nodes": %s, "slow": "%s", ' \
		"$(json "$model")" "$cpus" "$nodes" "$(json "$slow")"
	printf '"kernel": "%s", "build": "%s", ' "$(uname -r)" "$(json "$(uname -v)")"
	printf '"glibc": "%s", "governor": "%s", "virtual": %s, "commit": "@COMMIT@", ' \
		"$(getconf GNU_LIBC_VERSION 2>/dev/null | sed 's/glibc //')" \
		"$(cat /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor 2>/dev/null)" \
		"$(grep -q '^flags.* hypervisor' /proc/cpuinfo && echo '"yes"' || echo null)"
	printf '"date": "%s", "seed": null, "seconds": %s, "load": [%s]}\n' \
		"$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$seconds" \
		"$(cut -d' ' -f1-3 /proc/loadavg | tr ' ' ',')"
} >>"$result" || stop "cannot write $result: give another -o FILE"

runs=0 failed=0 round=0
while [ -z "$ended" ] && [ $round -lt "$rounds" ]; do
	shuf "$tmp/jobs" >"$tmp/round"
	while read -r load way n <&4 && [ -z "$ended" ]; do
		runs=$((runs + 1))
		[ ! -t 2 ] || printf '\r\033[Kround %d, %d/%d: %s, %s, %d threads; %d min left' \
			$((round + 1)) $runs $total "$load" "$way" "$n" \
			$(((total - runs) * (seconds + 2) / 60)) >&2
		before=$(cpu_times)
		measure "$load" "$way" "$n"
		[ -z "$ended" ] || break
		steal=$(echo "$before $(cpu_times)" | awk '{
			total = $4 - $2; if (total < 1) total = 1
			printf "%.4f", ($3 - $1) / total
		}')
		case $raw in '{"failed"'*) failed=$((failed + 1)) ;; esac
		printf '{"type": "raw", "experiment": "syncord-%s", "series": "%s", "x": %d, ' \
			"$load" "$way" "$n" >>"$result"
		printf '"round": %d, "steal": %s, "others": 0, "raw": %s}\n' \
			$round "$steal" "$raw" >>"$result"
	done 4<"$tmp/round"
	[ -n "$ended" ] || round=$((round + 1))
	[ -t 2 ] || echo "run.sh: round $round of $rounds done" >&2
done
[ ! -t 2 ] || printf '\r\033[K' >&2
reason="$round rounds"
[ -z "$ended" ] || reason=interrupted
printf '{"type": "end", "seconds": %d, "rounds": %d, "stopped": "%s", "points": %d}\n' \
	$(($(date +%s) - began)) $round "$reason" "$(wc -l <"$tmp/jobs")" >>"$result"
echo "$result: $boot, $round rounds, $failed runs failed; next: the other kernel, or" \
	"./report $result"
[ $failed = 0 ] || exit 1
