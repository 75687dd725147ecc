# SPDX-License-Identifier: MIT
# A thin face over Meson: `make`, `make demo`, `make test`, `make install`.
BUILD   ?= build
# GNU's name for it, typed only: an environment may have one of that name by chance.
TYPED   := $(if $(filter command,$(origin prefix)),$(prefix))
# What the caller wants; nothing, as an empty PREFIX is: a build that is there keeps its own.
WANTED  := $(or $(PREFIX),$(TYPED))
NINJA   := $(shell command -v ninja || echo ninja)
# Of those that can run side by side (test/meson.build): one more than CPUs, as many of them wait a
# while; a model may need a gigabyte.
TEST_JOBS ?= $(shell n=$$(nproc); echo $$((n < 4 ? n + 1 : 4)))

BUILD_PACKAGES := gcc libc6-dev meson ninja-build pkg-config libbpf-dev libelf-dev zlib1g-dev \
	clang-19 llvm-19 bpftool libncurses-dev libdw-dev libmicrohttpd-dev scdoc systemtap-sdt-dev
TEST_PACKAGES  := clang-format-19 spin tcc python3 patchelf python3-prometheus-client g++ \
	util-linux procps cmake valgrind rocksdb-tools sysbench stress-ng memcached \
	libmemcached-tools kyotocabinet-utils pbzip2 faketime bpftrace abigail-tools \
	bubblewrap python3-yaml systemd
CROSS_PACKAGES := gcc-aarch64-linux-gnu libc6-dev-arm64-cross
FUZZ_PACKAGES  := libclang-rt-19-dev
CONFORMANCE_PACKAGES := g++ python3 libglib2.0-tests libpython3.11-testsuite qtbase5-dev \
	libabsl-dev libgtest-dev libgmock-dev rustc rust-src cargo librust-parking-lot-dev \
	librust-rand-dev librust-bincode-dev
FUTEXES_PACKAGES := g++ libglib2.0-dev qtbase5-dev libabsl-dev \
	$(if $(shell command -v cargo),,rustc cargo) librust-parking-lot-dev librust-tokio-dev \
	ripgrep gstreamer1.0-tools gstreamer1.0-plugins-base
KERNELS_PACKAGES := qemu-system-x86 busybox-static python3
SYNCORD_PACKAGES := $(KERNELS_PACKAGES) git perl flex bison bc libelf-dev libssl-dev lz4 xz-utils \
	ccache bpftool
BUNDLE_PACKAGES := $(SYNCORD_PACKAGES) patchelf dpkg-dev debhelper rsync kmod cpio mmdebstrap \
	e2fsprogs
RUST_PACKAGES  := cargo rustc python3
SITE_PACKAGES  := cmark-gfm mandoc
CROSSED_PACKAGES := mmdebstrap util-linux
DEMO_PACKAGES  := rocksdb-tools sysbench
BENCH_PACKAGES := rt-tests linux-perf valgrind python3-matplotlib rocksdb-tools sysbench \
	kyotocabinet-utils libleveldb-dev libtdb-dev pbzip2 memcached libmemcached-tools

all: $(BUILD)/build.ninja
	$(if $(WANTED),@./packaging/configure $(BUILD) "$(WANTED)")
	@$(NINJA) -C $(BUILD) $(NINJAFLAGS)

$(BUILD)/build.ninja:
	@./packaging/configure $(BUILD) "$(or $(WANTED),/usr/local)" $(MESONFLAGS)

# Installs only what is missing, so that it needs no network on a machine that has it all.
deps-build:
	@./packaging/need-packages $(BUILD_PACKAGES)
deps-test: deps-build
	@./packaging/need-packages $(TEST_PACKAGES) $(FUZZ_PACKAGES) $(CROSS_PACKAGES) \
		$(SITE_PACKAGES)
	@./packaging/take-program prometheus promtool $(BUILD)/tools
deps-conformance: deps-build
	@./packaging/need-packages $(CONFORMANCE_PACKAGES)
deps-kernels: deps-build
	@./packaging/need-packages $(KERNELS_PACKAGES)
deps-syncord: deps-build
	@./packaging/need-packages $(SYNCORD_PACKAGES)
deps-syncord-bundle: deps-build
	@./packaging/need-packages $(BUNDLE_PACKAGES)
# A Rust of one's own will do.
deps-rust: deps-build
	@command -v cargo >/dev/null || ./packaging/need-packages $(RUST_PACKAGES)
deps-fuzz: deps-build
	@./packaging/need-packages $(FUZZ_PACKAGES)
# A build folder that is there looks again for what has been installed.
LOOK_AGAIN := if [ -f $(BUILD)/build.ninja ]; then meson setup --reconfigure $(BUILD) >/dev/null; fi
# What bench/futexes measures.
deps-futexes: deps-build
	@./packaging/need-packages $(FUTEXES_PACKAGES)
	@$(LOOK_AGAIN)
deps-site: deps-build
	@./packaging/need-packages $(SITE_PACKAGES) python3-matplotlib
deps-cross: deps-build
	@./packaging/need-packages $(CROSSED_PACKAGES)
deps-demo: deps-build
	@./packaging/need-packages $(DEMO_PACKAGES)
deps-bench: deps-build
	@./packaging/need-packages $(BENCH_PACKAGES)
	@$(LOOK_AGAIN)

demo: deps-demo
	@$(MAKE) --no-print-directory all
	@$(BUILD)/flexguard demo

test: deps-test
	@$(MAKE) --no-print-directory all
	@meson test -C $(BUILD) --no-rebuild --print-errorlogs --num-processes $(TEST_JOBS) \
		$(TESTFLAGS)

# What `make test` checks: C as .clang-format says, and 100 columns.
format: deps-test
	@./test/tools/format . --write

# Memory orders, judged by herd7; downloads it, 50 MB, once.  TESTS= names some.
litmus: deps-build
	@mkdir -p $(BUILD)
	@PYTHONDONTWRITEBYTECODE=1 ./test/litmus/run $(BUILD) $(TESTS)

# Other people's suites; downloads source packages, takes more than half an hour.  SUITES= names
# some.
conformance: deps-conformance
	@$(MAKE) --no-print-directory all
	@PYTHONDONTWRITEBYTECODE=1 ./test/conformance/run $(BUILD) $(SUITES)

# Every lock of `flexguard locks` under the stress and unit programs, about 15 minutes.  LOCKS=
# names some.
zoo-check: deps-test
	@$(MAKE) --no-print-directory all
	@./test/zoo/check $(BUILD) $(LOCKS)

# The monitor on other kernels: Debian's, in an emulator, two minutes each.  RELEASES= names some.
kernels: deps-kernels
	@$(MAKE) --no-print-directory all
	@PYTHONDONTWRITEBYTECODE=1 ./test/kernels/run $(BUILD) $(RELEASES)

# The same on a 64-bit Arm that is emulated too, with what `make cross` builds for it: 20 minutes.
kernels-arm64: deps-cross
	@./packaging/need-packages qemu-system-arm busybox-static
	@$(MAKE) --no-print-directory all
	@PYTHONDONTWRITEBYTECODE=1 ./test/kernels/run $(BUILD) --cpu aarch64 $(RELEASES)

# The kernel of kernel/patches: fetched, built, booted in an emulator, judged.  CASES= names some
# (test/syncord/run --list); SYNCORD_MINUTES= is a box of time, SYNCORD_FULL=1 runs each case as
# often as it wants.
syncord: deps-syncord
	@$(MAKE) --no-print-directory all
	@PYTHONDONTWRITEBYTECODE=1 ./test/syncord/run $(BUILD) $(CASES) $(if $(SYNCORD_FULL),--full)
	@$(if $(CASES),:,./test/syncord/evaluation $(BUILD)/syncord/results.jsonl)

# The same series: does it apply, does checkpatch like it, does each patch compile.
syncord-check: deps-syncord
	@PYTHONDONTWRITEBYTECODE=1 ./test/syncord/check

# For real machines: its kernel as a package, with all that measures it there; installed, removed
# and booted here.  A kernel of a server's size; BASELINE=1 builds another, without SynCord.
syncord-bundle: deps-syncord-bundle
	@$(MAKE) --no-print-directory all
	@./test/syncord/bundle/make $(BUILD) $(BUILD)/flexguard-syncord-bundle \
		$(if $(BASELINE),--baseline)
	@./test/syncord/bundle/try $(BUILD)/flexguard-syncord-bundle

# perf with its BPF skeletons from that source, and the case of the lab in which it counts beside
# `flexguard kernel profile`.
syncord-perf: deps-syncord
	@./packaging/need-packages libtraceevent-dev zlib1g-dev
	@PYTHONDONTWRITEBYTECODE=1 ./test/syncord/perf
	@$(MAKE) --no-print-directory syncord CASES=perf

# The crates of rust/: their tests and examples, parking_lot's tests on their types, all with the
# oldest compiler that they promise, and built with the oldest crates that they name; with a nightly
# what they order, under ThreadSanitizer.  Takes crates from the registry, unless Cargo has them.
rust: deps-rust
	@$(MAKE) --no-print-directory all
	@cd rust && export PKG_CONFIG_PATH="$(abspath $(BUILD))/meson-uninstalled" && \
		cargo test --workspace --locked --features flexguard/arc_lock && \
		cargo test --locked --no-default-features -p flexguard && \
		cargo run --locked --example queue && ./parking-lot-suite && \
		{ ./msrv || [ $$? = 77 ]; } && { ./minimal || [ $$? = 77 ]; } && \
		{ ./tsan || [ $$? = 77 ]; }

# The documents as a static site, in build/site; needs no network.
site: deps-site
	@$(MAKE) --no-print-directory all
	@./docs/site/make $(BUILD) $(BUILD)/site

# Other CPUs: Debian's cross compilers, unit tests under qemu-user.  Downloads a Debian, once.
# CPUS= names some.
cross: deps-cross
	@PYTHONDONTWRITEBYTECODE=1 ./test/cross/run $(BUILD) $(CPUS)

# What comes over the monitor's socket, from both ends: FUZZ_SECONDS=60.
fuzz: deps-fuzz
	@$(MAKE) --no-print-directory all
	@./test/fuzz/run $(BUILD) $(or $(FUZZ_SECONDS),60)

# Faults of the monitor and of its clients, all at once: SOAK_MINUTES=3, SOAK_SEED= repeats a run.
soak: deps-test
	@$(MAKE) --no-print-directory all
	@PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=test/cli python3 test/daemon/soak.py \
		$(BUILD)/flexguard $(BUILD)/test/cli/cli-contend

bench: deps-bench
	@$(MAKE) --no-print-directory all
	@./bench/run $(BUILD)

# For machines without compiler or network: a folder with a script.
bench-bundle: deps-bench
	@./packaging/need-packages patchelf
	@$(MAKE) --no-print-directory all
	@./bench/bundle/make $(BUILD) $(BUILD)/flexguard-bench-bundle

install: all
	meson install -C $(BUILD) --no-rebuild \
		$(if $(DESTDIR),--destdir "$$(realpath -m -- "$(DESTDIR)")")
	$(if $(DESTDIR),,@./packaging/installed)

# What `make install` of the same build put there.
uninstall:
	@./packaging/uninstall $(BUILD) "$(DESTDIR)" $(if $(WANTED),"$(WANTED)")
	$(if $(DESTDIR),,@./packaging/installed)

# The same bytes from two folders; Debian's packages, built, read by lintian, installed and removed
# in a bare Debian; a bill of their materials; a container image of them, tried; rpm's.  15 to 25
# minutes, downloads a Debian.
packages:
	@./packaging/reproducible
	@./packaging/deb $(BUILD)-packages/deb
	@./packaging/sbom $(BUILD)-packages/deb
	@./packaging/deb-try $(BUILD)-packages/deb
	@./packaging/image $(BUILD)-packages/deb $(BUILD)-packages/image
	@./packaging/rpm/build $(BUILD)-packages/rpm

clean:
	rm -rf $(BUILD)

.PHONY: all demo test format litmus conformance zoo-check kernels kernels-arm64 syncord \
	syncord-check syncord-bundle syncord-perf fuzz soak bench bench-bundle install uninstall \
	packages clean deps-build deps-test deps-conformance deps-kernels deps-syncord \
	deps-syncord-bundle deps-fuzz deps-futexes deps-demo deps-bench deps-rust rust deps-site \
	site deps-cross cross
