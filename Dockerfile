# Copyright The Sluice Authors.
# SPDX-License-Identifier: Apache-2.0

FROM --platform=$BUILDPLATFORM golang:1.26.8-bookworm AS build
ARG TARGETOS
ARG TARGETARCH
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -buildvcs=false -trimpath -ldflags '-s -w' -o /out/sluice ./cmd/sluice

FROM debian:12-slim AS root
RUN apt-get update -q \
    && apt-get install -q -y --no-install-recommends ca-certificates git tzdata \
    && rm -rf /var/lib/apt/lists/*
COPY hack/image-root.sh /image-root.sh
RUN /image-root.sh /root-of-image

FROM scratch
COPY --from=root /root-of-image /
COPY --from=build /out/sluice /sluice
COPY LICENSE /LICENSE
ENV HOME=/tmp PATH=/usr/bin
USER 65532:65532
ENTRYPOINT ["/sluice"]
