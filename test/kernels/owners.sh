# SPDX-License-Identifier: MIT
# How often owners lose their CPU under the kernel's scheduler and under `flexguard sched`, as
# docs/design/sched.md has it; by `test/kernels/run BUILD trixie-backports --script` with this.
export FLEXGUARD_SOCKET=@owners FLEXGUARD_VERBOSE=0
/fg/flexguard monitor &
until /fg/flexguard status >/dev/null 2>&1; do sleep 1; done

number_of() { # its name in JSON, which is read
	sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p"
}

preempted() { # owners so far; the emulator may stand still while the monitor is asked
	local n=
	until [ "$n" ]; do
		n=$(/fg/flexguard status --json | number_of preempted_total)
	done
	echo "$n"
}

measure() { # scheduler, section and gap in us
	local scheduler=$1 section=$2 gap=$3 before pid=
	case $scheduler in
	plain) /fg/flexguard sched --plain --json >/tmp/sched & pid=$! ;;
	owners) /fg/flexguard sched --json >/tmp/sched & pid=$! ;;
	esac
	if [ "$pid" ]; then
		until [ "$(cat /sys/kernel/sched_ext/state)" = enabled ]; do
			kill -0 $pid || return
			sleep 0.2
		done
	fi
	before=$(preempted)
	/fg/flexguard run --stats=/tmp/stats.json -- /fg/mutex_bench -t 6 -d 6 -c ${section}000 \
		-o ${gap}000 >/tmp/bench
	echo "scheduler=$scheduler section_us=$section gap_us=$gap" \
		"preempted=$(($(preempted) - before))" \
		"involuntary=$(sed -n 's/.*involuntary *//p' /tmp/bench)" \
		"blocked_us=$(($(number_of blocking_ns </tmp/stats.json) / 1000))" \
		"sections_per_ms=$(sed -n 's/^sections.ms *//p' /tmp/bench)"
	if [ "$pid" ]; then
		kill $pid
		wait $pid
		cat /tmp/sched
	fi
}

for round in 1 2 3; do
	for load in "20 5" "1 1"; do
		for scheduler in stock plain owners; do
			measure $scheduler $load
		done
	done
done
