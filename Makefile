# SPDX-License-Identifier: Apache-2.0
# The few commands that a newcomer needs. `make` builds, `make demo` shows the loop at work, `make
# test` builds and runs the tests, `make check` runs the small checks, `make bench` builds the measurements.
BUILD ?= build/release
JOBS ?= $(shell nproc)
# Of rooms that handle texts and decisions (CMakeLists.txt); -O0 builds a tenth faster.
COLD ?= -O1
# ON makes warnings errors.
WERROR ?= OFF
CONFIGURE = cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=Release -DKERNELPRO_COLD=$(COLD) -DKERNELPRO_WERROR=$(WERROR)
COMPILE = cmake --build $(BUILD) --parallel $(JOBS)
# Evaluations of the demo: enough to show the tuner at work, a few minutes at most.
DEMO_EVALUATIONS ?= 24
DEMO_RUN ?= build/demo

# Where `make install` puts programs: PREFIX/bin and PREFIX/libexec/kernelpro, below DESTDIR.
PREFIX ?= /usr/local
DESTDIR ?=

.PHONY: all demo test check bench install wheel clean

all:
	scripts/setup
	$(CONFIGURE) -DKERNELPRO_TESTS=OFF -DKERNELPRO_BENCH=OFF
	$(COMPILE)

demo: all
	rm -rf $(DEMO_RUN)
	$(BUILD)/bin/kernelpro optimize examples/softmax --evaluations $(DEMO_EVALUATIONS) --run $(DEMO_RUN)

# Programs run side by side, apart from those that compare times (tests/CMakeLists.txt); four,
# because many of them wait.
test:
	scripts/setup test
	$(CONFIGURE) -DKERNELPRO_TESTS=ON -DKERNELPRO_BENCH=OFF
	$(COMPILE)
	ctest --test-dir $(BUILD) --output-on-failure -j4

check:
	scripts/setup check
	scripts/check

# Builds every measurement; results/ has the command for each.
bench:
	scripts/setup bench
	$(CONFIGURE) -DKERNELPRO_TESTS=OFF -DKERNELPRO_BENCH=ON
	$(COMPILE)
	@ls $(BUILD)/bin/bench_*

install: all
	DESTDIR="$(DESTDIR)" cmake --install $(BUILD) --prefix "$(PREFIX)" --strip

# From a finished build, where there is one; `pip install .` is the same without the checks.
wheel:
	scripts/setup wheel
	scripts/wheel $(BUILD)

clean:
	rm -rf $(BUILD)
