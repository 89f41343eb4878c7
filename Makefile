# The verbs; Meson and Ninja do the work. Build directories: build*/, all disposable.
FUZZ_SECONDS ?= 60
MESON_TEST = meson test --print-errorlogs
SANITIZED = -Dbuildtype=debugoptimized -Db_sanitize

.PHONY: all test test-slurm demo demo-slurm lint memcheck tsan fuzz bench bench-slurm pretrained install deb clean

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

test:
	@tools/install-deps test
	@$(MAKE) --no-print-directory build-test/build.ninja
	@$(MESON_TEST) -C build-test

# Faults and lives of real Slurm clusters, one after the other: a quarter of an hour.
test-slurm:
	@tools/install-deps test
	@$(MAKE) --no-print-directory build-test/build.ninja
	@$(MESON_TEST) -C build-test --suite slurm-long

lint: build/build.ninja
	@tools/lint

memcheck: build-memcheck/build.ninja
	@$(MESON_TEST) -C build-memcheck --suite unit --timeout-multiplier 10 \
	    --wrapper 'valgrind -q --error-exitcode=1 --leak-check=full --show-leak-kinds=definite'

# Whatever has threads.
tsan: build-tsan/build.ninja
	@$(MESON_TEST) -C build-tsan --timeout-multiplier 5 refine/trainer cycle/cycle sim/eval

fuzz: build-fuzz/build.ninja
	@ninja -C build-fuzz
	@tools/fuzz build-fuzz $(FUZZ_SECONDS)

bench: all
	@build/gogh bench

# A real Slurm of 100 nodes and 400 jobs, three times a quarter of an hour: leave the machine alone.
bench-slurm: all
	@SRC=$(CURDIR) GOGH=$(CURDIR)/build/gogh GOGHD=$(CURDIR)/build/goghd \
	    GOGH_SLURM_DRIVER=$(CURDIR)/build/gogh-slurm-driver python3 -B tests/bench/slurm.py

# The weights that ship with the program, from measured data; train.sh checks that they are these.
pretrained: all
	@tools/pretrain build/gogh data/pretrained.weights
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
	@meson setup build-memcheck -Dbuildtype=debugoptimized
build-tsan/build.ninja:
	@meson setup build-tsan $(SANITIZED)=thread
build-fuzz/build.ninja:
	@CC=clang meson setup build-fuzz -Dfuzz=true $(SANITIZED)=address,undefined -Db_lundef=false
