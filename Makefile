# The verbs; Meson and Ninja do the work. Build directories: build*/, all disposable.
FUZZ_SECONDS ?= 60
MESON_TEST = meson test --print-errorlogs
VALGRIND = valgrind -q --error-exitcode=1 --leak-check=full --show-leak-kinds=definite
# Many tests wait most of their time.
export MESON_TESTTHREADS ?= $(shell echo $$((4 * $$(nproc))))
# AddressSanitizer keeps 256 MB of freed memory and 30 callers of each block; with less, make test
# takes 570 s of the cores instead of 595.
export ASAN_OPTIONS ?= quarantine_size_mb=16:malloc_context_size=8
SANITIZED = -Dbuildtype=debugoptimized -Db_sanitize

.PHONY: all test test-all demo demo-slurm lint memcheck tsan fuzz bench bench-slurm pretrained install deb clean

all: build/build.ninja
	@ninja -C build

demo:
	@tools/install-deps build
	@$(MAKE) --no-print-directory all
	@build/gogh demo --out build/demo-summary.json

# A real Slurm cluster on this machine, steered.
demo-slurm:
	@tools/install-deps test
	@$(MAKE) --no-print-directory all
	@tools/demo-slurm build

# The contract: about five minutes on two quiet cores, after a build of about four with a cold cache.
test:
	@tools/install-deps test
	@$(MAKE) --no-print-directory build-test/build.ninja
	@$(MESON_TEST) -C build-test

# And what is longer, an hour or so: all seeds, 200 kills, faults and lives of real Slurm clusters one
# after the other. Some of it is judged by seconds: leave the machine alone.
test-all:
	@tools/install-deps test
	@$(MAKE) --no-print-directory build-test/build.ninja
	@$(MESON_TEST) -C build-test --setup all

lint: build/build.ninja
	@tools/lint

# The unit tests as they ship, optimised, with a tenth of their seeds, but for those that
# tests/meson.build leaves out.
memcheck: build-memcheck/build.ninja
	@$(MESON_TEST) -C build-memcheck --setup few --suite memcheck --wrapper '$(VALGRIND)'

# Whatever has threads: the list is in tests/meson.build.
tsan: build-tsan/build.ninja
	@$(MESON_TEST) -C build-tsan --setup few --suite threads

fuzz: build-fuzz/build.ninja
	@ninja -C build-fuzz
	@tools/fuzz build-fuzz $(FUZZ_SECONDS)

bench: all
	@build/gogh bench

# A real Slurm of 100 nodes and 400 jobs, three times a quarter of an hour: leave the machine alone.
bench-slurm: all
	@SRC=$(CURDIR) GOGH=$(CURDIR)/build/gogh GOGHD=$(CURDIR)/build/goghd \
	    GOGH_SLURM_DRIVER=$(CURDIR)/build/gogh-slurm-driver python3 -B tests/bench/slurm.py

# The weights that ship with the program, from measured data and from synthetic sites; train.sh and,
# of the latter, network.sh check that they are these.
pretrained: all
	@tools/pretrain build/gogh data/pretrained.weights
	@build/gogh train --network --seed 1 --out data/network.weights
	@ninja -C build

install: all
	@meson install -C build --no-rebuild

# Of what is committed, in build/deb.
deb:
	@packaging/build-deb

clean:
	@rm -rf build build-*

build/build.ninja:
	@meson setup build -Dtests=false
build-test/build.ninja:
	@meson setup build-test $(SANITIZED)=address,undefined
build-memcheck/build.ninja:
	@meson setup build-memcheck -Ddebug=true -Dwerror=false
build-tsan/build.ninja:
	@meson setup build-tsan $(SANITIZED)=thread
build-fuzz/build.ninja:
	@CC=clang meson setup build-fuzz -Dfuzz=true $(SANITIZED)=address,undefined -Db_lundef=false
