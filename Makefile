# edgecam: `make demo` shows it, `make test` proves it, `make help` lists the rest.
# Long steps say what they do; VERBOSE=1 shows their output as it comes.

SHELL         := /bin/bash
.SHELLFLAGS   := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS     += --no-builtin-rules --no-print-directory
.DELETE_ON_ERROR:

ifndef VERSION
VERSION := $(shell scripts/version.sh)
endif
PREFIX  ?= /usr/local
DESTDIR ?=
ARGS    ?=
ARCH    ?=

ORT_VERSION       := $(shell sed -n 's/^version=//p' scripts/fetch-onnxruntime.sh)
ORT_DIR           := .cache/onnxruntime/$(ORT_VERSION)
ORT_LIB           := $(ORT_DIR)/libonnxruntime.so.1
GOLANGCI_VERSION  := v2.13.0
GOLANGCI          := .cache/tools/golangci-lint-$(GOLANGCI_VERSION)

GO_LDFLAGS := -s -w -X main.version=$(VERSION)
STEP       := scripts/step.sh

.PHONY: help
help: ## this list
	@echo "edgecam $(VERSION)"; echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo; echo "ARGS=… is passed on to demo, bench and fuzz; PREFIX= and DESTDIR= steer install; VERBOSE=1 shows everything."

.PHONY: demo
demo: build ## two simulated cameras, detected live, at http://127.0.0.1:8080
	@exec bin/edgecam demo $(ARGS)

.PHONY: build
# -buildvcs=false: git refuses a checkout of another user, which would end the build.
build: setup web/dist/index.html $(ORT_LIB) ## bin/edgecam, dashboard included
	@$(STEP) "build bin/edgecam $(VERSION)" go build -trimpath -buildvcs=false -ldflags '$(GO_LDFLAGS)' -o bin/edgecam ./cmd/edgecam

# PKG_CONFIG_LIBDIR and not …_PATH: the system's shared FFmpeg must not step in.
FFMPEG_DIR := $(CURDIR)/.cache/ffmpeg

.PHONY: build-static
build-static: web/dist/index.html $(ORT_LIB) ## bin/edgecam-static, with an FFmpeg of its own inside: needs no libav* on the box
	@scripts/build-ffmpeg.sh $(FFMPEG_DIR)
	@PKG_CONFIG_LIBDIR=$(FFMPEG_DIR)/lib/pkgconfig CGO_LDFLAGS='-O2 -g -L$(FFMPEG_DIR)/lib' $(STEP) "build bin/edgecam-static $(VERSION)" \
	  go build -trimpath -buildvcs=false -tags staticffmpeg -ldflags '$(GO_LDFLAGS)' -o bin/edgecam-static ./cmd/edgecam
	@if ldd bin/edgecam-static | grep libav; then echo "bin/edgecam-static still needs the libraries above" >&2; exit 1; fi

.PHONY: release
release: setup web/dist/index.html $(ORT_LIB) ## Debian packages and tarballs for amd64 and arm64 in dist/ (minutes the first time; ARCH=amd64 makes one)
	@VERSION='$(VERSION)' scripts/release.sh $(ARCH)

.PHONY: check-reproducible
check-reproducible: release ## build the release again in another directory, compare every byte (ARGS=--whole: FFmpeg too)
	@VERSION='$(VERSION)' scripts/check-reproducible.sh $(ARGS)

.PHONY: setup
setup:
	@scripts/setup-build.sh

# The dashboard is built again only when one of its sources changed.
UI_SOURCES := $(shell find web/ui -type d \( -name node_modules -o -name dist -o -name e2e -o -name test-results \) -prune -o -type f -print 2>/dev/null)

web/ui/node_modules/.complete: web/ui/package-lock.json web/ui/package.json
	@$(STEP) "fetch the dashboard's packages" npm --prefix web/ui ci --prefer-offline --no-audit --no-fund
	@touch $@

web/dist/index.html: web/ui/node_modules/.complete $(UI_SOURCES)
	@$(STEP) "build the dashboard" npm --prefix web/ui run build
	@touch web/dist/.keep $@

# ONNX Runtime's CPU library, pinned, checked and shown by the script.
$(ORT_LIB): scripts/fetch-onnxruntime.sh
	@scripts/fetch-onnxruntime.sh
	@touch $@

.PHONY: test
test: build ## every test: vet, format, race detector, dashboard, browser, unit file
	@scripts/setup-test.sh
	@scripts/test.sh

FUZZ ?= 1m

.PHONY: fuzz
fuzz: build ## every fuzz target in turn, FUZZ=1m each; ARGS=capture/rtsp or part of another name picks
	@scripts/fuzz.sh $(FUZZ) $(ARGS)

.PHONY: bench
bench: build ## frames a second and time per stage; beside a Python peer where there is one
	@scripts/bench.sh $(ARGS)

.PHONY: bench-cameras
bench-cameras: build ## how many cameras fit without a GPU, and the cost of a frame beside a Python peer (minutes)
	@scripts/bench-cameras.sh

.PHONY: bench-farm
bench-farm: build ## 20 minutes beside 16 cameras with every fault: leaks, losses, and how soon a camera is back
	@bin/edgecam bench farm $(ARGS)

.PHONY: lint
lint: setup web/dist/index.html $(GOLANGCI) ## static analysis, with the reasons in .golangci.yml
	@$(STEP) "golangci-lint $(GOLANGCI_VERSION)" $(GOLANGCI) run ./...

.PHONY: fmt
fmt: $(GOLANGCI) ## format Go sources
	@$(GOLANGCI) fmt ./...

$(GOLANGCI):
	@mkdir -p $(@D)
	@GOBIN=$(abspath $(@D)) $(STEP) "build golangci-lint $(GOLANGCI_VERSION) (minutes, once)" \
	  go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	@mv $(@D)/golangci-lint $@

# The libraries of a GPU build of ONNX Runtime must be found: EDGECAM_ONNXRUNTIME
# names the core, LD_LIBRARY_PATH the places of the rest.
.PHONY: test-hw
test-hw: build ## tests on a real NVIDIA card (ONNX Runtime GPU build by EDGECAM_ONNXRUNTIME, TensorRT where it is; SANITIZER=compute-sanitizer)
	@scripts/setup-test.sh
	@scripts/test-hw.sh

.PHONY: ptx
ptx: ## compile the CUDA kernels to the PTX that is committed (needs clang-19)
	@$(STEP) "compile the kernels" scripts/ptx.sh

.PHONY: install
install: build ## binary, unit, user and a first configuration (as root; DESTDIR for packagers)
	@DESTDIR='$(DESTDIR)' PREFIX='$(PREFIX)' ORT_DIR='$(ORT_DIR)' scripts/install.sh

.PHONY: clean
clean: ## remove what the build left, but for downloads
	@rm -rf bin dist web/ui/node_modules coverage.* && find web/dist -mindepth 1 ! -name .keep -delete
