# SPDX-License-Identifier: Apache-2.0
# The commands of the project, for people and for CI. `make help` lists them; CMakePresets.json holds the configurations.
#
#   make test PRESET=dev                 another preset (build-dev/)
#   make run SCENARIO=my.yaml            another scenario
#   make fuzz FUZZ_SECONDS=600           a longer run
#   make install PREFIX=$HOME/.local     another place

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build

PRESET ?= release
BUILD := $(if $(filter release,$(PRESET)),build,build-$(PRESET))
JOBS ?= $(shell nproc)
SCENARIO ?= scenarios/paper/table_viii.yaml
FUZZ_SECONDS ?= 60
PREFIX ?= /usr/local
# Changed files are those that differ from here (make tidy).
BASE ?= $(shell git merge-base HEAD origin/main 2>/dev/null || git rev-parse HEAD~1)

.PHONY: deps deps-dev build run test bench fit regress regress-update lint tidy format asan fuzz docs install clean help

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

deps: ## install the Debian packages of .ci/packages.txt that are missing
	@.ci/install_packages .ci/packages.txt

deps-dev: ## the same for lint, tidy, asan and fuzz (.ci/packages-dev.txt)
	@.ci/install_packages .ci/packages.txt .ci/packages-dev.txt

# Ninja configures again by itself when a CMake file changes; this rule only makes the build folder.
%/build.ninja: CMakePresets.json | deps
	cmake --preset $(if $(filter build,$*),release,$(patsubst build-%,%,$*))

build: $(BUILD)/build.ninja ## build the command, build/mtsim
	cmake --build $(BUILD) --target mtsim

run: build ## build, print Table VIII (the paper's latencies beside the simulated ones) and text from a model through microcode
	$(BUILD)/mtsim run $(SCENARIO)
	$(BUILD)/mtsim make-model $(BUILD)/model --seed 1 --force
	$(BUILD)/mtsim generate --model $(BUILD)/model --prompt "Once upon a time" --tokens 24 --stats

test: $(BUILD)/build.ninja ## build and run all tests
	cmake --build $(BUILD)
	ctest --test-dir $(BUILD) --parallel $(JOBS) --output-on-failure

bench: $(BUILD)/build.ninja ## speed of the simulator on this host, beside its yardsticks
	cmake --build $(BUILD) --target mtsim mtsim_bench
	$(BUILD)/mtsim_bench

fit: build ## fit the three mt3000 machines to Table VIII (FP32), then one batch size a model to Tables V and VI (512 tokens)
	$(BUILD)/mtsim fit scenarios/paper/table_viii.yaml --write sim/machines/mt3000.yaml
	$(BUILD)/mtsim fit scenarios/paper/table_viii.yaml --write sim/machines/mt3000-exposed.yaml
	$(BUILD)/mtsim fit scenarios/paper/table_viii.yaml --write sim/machines/mt3000-rowcost.yaml \
	  --parameters ddr.bandwidth_gb_s,ddr.row_cost_ns
	$(BUILD)/mtsim fit scenarios/paper/table_v.yaml scenarios/paper/table_vi.yaml --write scenarios/paper/serving_plans.yaml

regress: build ## compare what every kernel and operator takes with its golden file
	$(BUILD)/mtsim regress

regress-update: build ## rewrite the golden files; review the diff
	$(BUILD)/mtsim regress --update
	git diff --stat -- tests

lint: deps-dev ## format, include directions, markers, file length, shell syntax
	@.ci/lint

tidy: deps-dev $(BUILD)/build.ninja ## clang-tidy on the files changed since BASE
	@git diff --name-only --diff-filter=d $(BASE) -- '*.cpp' | xargs -r -P $(JOBS) -n 1 clang-tidy-16 -p $(BUILD) --quiet

format: deps-dev ## apply .clang-format
	git ls-files '*.h' '*.cpp' '*.inc' | xargs clang-format -i

asan: deps-dev build-asan/build.ninja ## address and undefined-behaviour sanitizers on the tests that need no SystemC
	cmake --build build-asan
	ctest --test-dir build-asan --parallel $(JOBS) --output-on-failure

fuzz: deps-dev build-asan/build.ninja ## run each fuzzer for FUZZ_SECONDS under the sanitizers
	cmake --build build-asan --target fuzzers
	@for fuzzer in build-asan/fuzz_*; do \
	  corpus=build-asan/corpus/$${fuzzer##*/}; mkdir -p $$corpus; \
	  $$fuzzer -max_total_time=$(FUZZ_SECONDS) -timeout=10 -print_final_stats=1 -artifact_prefix=build-asan/ $$corpus >$$corpus.log 2>&1 \
	    || { tail -n 40 $$corpus.log; exit 1; }; \
	  echo "$$fuzzer: clean after $(FUZZ_SECONDS) s, $$(sed -n 's/^stat::number_of_executed_units: *//p' $$corpus.log) inputs"; \
	done

docs: build ## write the generated pages docs/isa.md and docs/fidelity.md
	$(BUILD)/mtsim report isa > $(BUILD)/isa.md
	$(BUILD)/mtsim run scenarios/paper/table_viii.yaml --json $(BUILD)/table_viii.json
	$(BUILD)/mtsim run scenarios/paper/table_ix.yaml --json $(BUILD)/table_ix.json
	$(BUILD)/mtsim report fidelity $(BUILD)/table_viii.json $(BUILD)/table_ix.json sim/machines/mt3000.fit.json > $(BUILD)/fidelity.md
	mv $(BUILD)/isa.md $(BUILD)/fidelity.md docs/

install: build ## install the command, machines and scenarios to PREFIX
	cmake --install $(BUILD) --prefix $(PREFIX)

clean: ## remove all build folders
	rm -rf build build-*
