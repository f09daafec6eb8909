# Copyright The Sluice Authors.
# SPDX-License-Identifier: Apache-2.0

# The image that docker-build makes and deploy installs.
IMG ?= sluice:latest
CONTAINER_TOOL ?= docker
KUBECTL ?= kubectl
# Passed to go test.
TESTFLAGS ?=
# The packages that `make test` tests.
PACKAGES ?= ./...

SHELL = /usr/bin/env bash -o pipefail
.SHELLFLAGS = -ec
.DEFAULT_GOAL := help

##@ General

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN {FS = ":.*##"; printf "Usage: make \033[36m<target>\033[0m\n"} \
	  /^[a-zA-Z0-9_-]+:.*?##/ {printf "  \033[36m%-15s\033[0m %s\n", $$1, $$2} \
	  /^##@/ {printf "\n\033[1m%s\033[0m\n", substr($$0, 5)}' $(MAKEFILE_LIST)

##@ Development

.PHONY: generate
generate: bin/controller-gen ## Regenerate deep copies, CRDs and reference docs from the Go types.
	hack/generate.sh

.PHONY: manifests
manifests: bin/controller-gen ## Regenerate the controller's role from the markers in controllers/.
	bin/controller-gen rbac:roleName=controller paths=./controllers/... output:rbac:artifacts:config=config/rbac

.PHONY: fmt
fmt: bin/golangci-lint ## Format the Go code.
	bin/golangci-lint fmt

.PHONY: vet
vet: ## Run go vet, also over what only test binaries contain.
	go vet ./...
	go vet -tags sluicetest ./internal/clock/...

.PHONY: lint
lint: bin/golangci-lint ## Lint, import directions included.
	bin/golangci-lint run ./...

.PHONY: verify
verify: tools ## Regenerate, format, lint, check licences and go.mod; fail on a dirty tree.
	hack/verify.sh

.PHONY: test
test: controlplane postgres ## Run all tests with the race detector; fail when none ran or one was skipped.
	go run ./hack/gotest -race -timeout=15m $(TESTFLAGS) $(PACKAGES)

.PHONY: demo
demo: controlplane postgres ## Play the whole story on real parts. KEEP=1 leaves it running.
	KEEP=$(KEEP) go run ./hack/demo

##@ Build

.PHONY: build
build: ## Build bin/sluice and bin/githubsim.
	CGO_ENABLED=0 go build -trimpath -o bin/ ./cmd/...

.PHONY: docker-build
docker-build: ## Build the image IMG (default sluice:latest).
	$(CONTAINER_TOOL) build -t $(IMG) .

##@ Deployment (to the cluster of the current kubeconfig)

.PHONY: install
install: bin/kustomize ## Install the CRDs.
	bin/kustomize build config/crd | $(KUBECTL) apply --server-side -f -

.PHONY: uninstall
uninstall: bin/kustomize ## Remove the CRDs, and with them every object of these kinds.
	bin/kustomize build config/crd | $(KUBECTL) delete --ignore-not-found -f -

# The migration is a Job, and a Job's image cannot be changed: the one of an
# earlier release goes first.
.PHONY: deploy
deploy: bin/kustomize ## Install CRDs, roles, migration, controller and receiver with the image IMG.
	rm -rf dist/deploy && mkdir -p dist/deploy
	cd dist/deploy && ../../bin/kustomize create --resources ../../config/default && ../../bin/kustomize edit set image sluice=$(IMG)
	$(KUBECTL) delete job -n sluice-system sluice-migrate --ignore-not-found
	bin/kustomize build dist/deploy | $(KUBECTL) apply --server-side -f -

# The CRDs stay, because objects go with them, and the namespace, because the
# Secrets in it are the administrator's.
.PHONY: undeploy
undeploy: bin/kustomize ## Remove what deploy installed, but for the CRDs and the namespace.
	rm -rf dist/undeploy && mkdir -p dist/undeploy
	cd dist/undeploy && ../../bin/kustomize create --resources ../../config/default && \
	  for kind in CustomResourceDefinition Namespace; do \
	    ../../bin/kustomize edit add patch --kind $$kind --patch "{\$$patch: delete, kind: $$kind, metadata: {name: any}}"; \
	  done
	bin/kustomize build dist/undeploy | $(KUBECTL) delete --ignore-not-found -f -

##@ Tools (built once per version into the user's cache, linked into bin/)

.PHONY: tools
tools: bin/controller-gen bin/golangci-lint bin/kustomize ## Build the pinned tools.

# Asked every time: the script knows by itself when there is nothing to do.
bin/%: FORCE
	@hack/tool.sh $*

.PHONY: FORCE
FORCE:

.PHONY: controlplane
controlplane: ## Build etcd, kube-apiserver, kube-controller-manager and kubectl.
	@hack/controlplane.sh

.PHONY: postgres
postgres: ## Find Postgres' programs; install them where they are missing.
	@hack/postgres.sh

.PHONY: clean
clean: ## Remove what was built in this clone; the user's cache stays.
	rm -rf bin dist tmp
