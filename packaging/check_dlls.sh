#!/usr/bin/env bash
# Checks that programs and libraries for Windows need nothing but Windows and are there at all.
# usage: bash packaging/check_dlls.sh FILE...
set -euo pipefail
for file in "${@:?usage: check_dlls.sh FILE...}"; do
  needed=$(x86_64-w64-mingw32-objdump -p "$file" | sed -n 's/^.*DLL Name: //p')
  others=$(grep -vixE '(kernel32|msvcrt|advapi32|shell32|user32)\.dll' <<<"$needed" || true)
  if [ -z "$needed" ] || [ -n "$others" ]; then
    echo "$file needs ${others:-no DLL: it is not a program or library for Windows}" >&2
    exit 1
  fi
done
