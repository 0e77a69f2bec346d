# A helper around setup.py, pytest and the scripts; it makes its own virtual environment. `make help` lists the targets.
PYTHON ?= python3
TORCH ?= torch==2.13.0
VENV ?= .venv
JOBS ?= $(shell nproc)
# PyTorch's CPU wheels have an index of their own; leave empty where the default index serves them.
TORCH_INDEX ?=

python := $(VENV)/bin/python
pip := $(python) -m pip --disable-pip-version-check install --quiet
environment := $(VENV)/.installed-$(subst /,_,$(TORCH))
export MAX_JOBS ?= $(JOBS)
# Built for this machine, to be quick: the instruction set it has, the GPU half where there is a GPU. `pip install .` builds all.
ifeq ($(shell uname -m),x86_64)
export MYBACKEND_BUILD_ISA ?= $(if $(filter 4,$(words $(shell grep -m1 ^flags /proc/cpuinfo | grep -oE 'avx512(bw|cd|dq|vl)\b'))),v4,v3)
endif
ifeq ($(wildcard /dev/nvidiactl),)
export MYBACKEND_BUILD_CUDA ?= 0
endif

.PHONY: help build demo test engine-check cpp-test gpu-build conformance conformance-compile nvcc-sources lint format bench gpu-check coverage clean

help:
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | expand -t 14

$(environment): pyproject.toml
	@echo "== virtual environment in $(VENV) with $(TORCH)"
	$(PYTHON) -m venv $(VENV)
	$(pip) --upgrade pip
	$(pip) $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) "$(TORCH)"
	$(pip) -r requirements.txt
	@touch $@

build: $(environment) ## build the libraries into mybackend/ and install the package as editable
	@echo "== build (incremental; the first takes some minutes)"
	$(python) setup.py --quiet build_ext --inplace
	@PYTHONWARNINGS=ignore $(pip) --no-build-isolation --no-deps --editable .

demo: build ## train the demo GPT on this device and compare with the CPU
	$(python) examples/train_gpt.py

test: build ## the Python test suite
	$(python) -m pytest test --ignore=test/cpp --ignore=test/compile --ignore=test/ops/test_opinfo.py
	$(python) -m pytest -n $(JOBS) test/compile test/ops/test_opinfo.py

engine-check: build ## the autograd engine's long tests: 10,000 random graphs, all samples, a minute of threads
	MYBACKEND_ENGINE_TESTS=long $(python) -m pytest -n $(JOBS) --timeout 3600 test/autograd_engine

cpp-test: $(environment) ## C++ tests of the layers under ATen, under AddressSanitizer and ThreadSanitizer
	$(MAKE) -C test/cpp -j$(JOBS) -O PYTHON=$(abspath $(python))
	$(MAKE) -C test/cpp/runtime -j$(JOBS) -O PYTHON=$(abspath $(python))
	$(MAKE) -C test/cpp/engine -j$(JOBS) -O

# Optimising the kernels takes half of nvcc's time and finds no mistake in them.
gpu-build: ## compile the GPU half whole but unoptimised, and test it as a library; needs nvcc and no GPU
	MYBACKEND_BUILD_CUDA=1 MYBACKEND_CUDA_FLAGS="-Ofc=max $(MYBACKEND_CUDA_FLAGS)" $(MAKE) build
	$(python) -m pytest test/runtime/test_cuda_library.py

conformance: build ## all of upstream's OpInfo samples that `make test` takes a slice of
	MYBACKEND_CONFORMANCE=full $(python) -m pytest -n $(JOBS) test/ops/test_opinfo.py

conformance-compile: build ## all of upstream's OpInfo, compiled, static and dynamic shapes; a table in benchmarks/results/
	MYBACKEND_CONFORMANCE=full $(python) -m pytest -n $(JOBS) test/compile/test_opinfo.py

nvcc-sources: build ## every kernel that the tests of torch.compile generate, compiled for GPUs (needs nvcc, no GPU)
	TORCHINDUCTOR_CACHE_DIR=$(abspath build)/compile-cache $(python) -m pytest test/compile
	$(python) tools/compile_for_gpu.py build/compile-cache

bench: build ## ours against torch CPU; JSON in benchmarks/results/
	$(python) benchmarks/operators.py
	$(python) benchmarks/training.py
	$(python) benchmarks/compile.py
	$(python) benchmarks/gemm.py
	$(python) benchmarks/convolution.py

gpu-check: ## on a machine with a GPU: build, test and measure there (about ten minutes)
	$(PYTHON) tools/gpu_check.py

coverage: build ## how every operator is served: docs/support.md
	$(python) -m mybackend coverage --write docs/support.md

format: $(environment) ## format all sources
	$(python) tools/lint.py --fix

lint: $(environment) ## formatting, typing, layers
	$(python) tools/lint.py

clean: ## remove everything that was built
	rm -rf build dist mybackend/lib mybackend/_C*.so mybackend/_build_info.py mybackend/_operators.json *.egg-info
