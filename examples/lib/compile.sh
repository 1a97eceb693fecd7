#!/bin/bash
# compile.sh: unpacks, configures and compiles $PACKAGE, each step measured by itself. For EXEC; needs a
# $TESTDIR.
#
# What is compiled is for variables to say: PACKAGE, and PKGFILE or APTSOURCE (fetch-source.sh), CONFIGURE,
# COMPILE and INSTALL, each a line, and an empty one is left out. A hook `compilecommand` can say more
# (docs/howto/hooks.md).
set -u
# shellcheck source=examples/lib/commonsettings
. "${BASH_SOURCE[0]%/*}/commonsettings"

set_default PACKAGE generated
set_default CONFIGURE ./configure
set_default COMPILE make
set_default INSTALL ''

main() {
    local file command
    file=$("${BASH_SOURCE[0]%/*}/fetch-source.sh") || exit 1
    if [[ $file == */cache/generated-*.tar && $PACKAGE != generated ]]; then
        # It stands in for what could not be had.
        export PACKAGE=generated CONFIGURE=./configure COMPILE=make INSTALL=''
    fi
    ap_workdir compile
    CMDLIST=()
    ap_hook compilecommand "$PACKAGE" "$file" || ap_fail "no hook says how to compile $PACKAGE"
    ((${#CMDLIST[@]} > 0)) || ap_fail "the commands to compile $PACKAGE are none"
    for command in "${CMDLIST[@]}"; do
        ap_measure_line "$command" || ap_fail "$PACKAGE: this failed: $command"
    done
}

main
