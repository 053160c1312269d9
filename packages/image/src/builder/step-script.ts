import { buildPaths } from "@spry/function";
import { madeFile } from "./handover.ts";

/**
 * The program of a build's containers, next to `builder.cjs`, for a POSIX shell. Most builds are made by their first
 * step, and starting Node.js for each of the others only to find nothing left to do costs more than everything but
 * the installation: a shell looks first. Arguments are the builder's, `--step` and its value last.
 */
export const stepScript: string = `\
made="\${SPRY_ROOT-}${buildPaths.handover}/${madeFile}"
if [ -f "$made" ] && IFS= read -r word < "$made"; then
  for step; do :; done
  if [ "$step" = push ]; then
    echo "the image exists already: an earlier step has pushed it"
    printf %s "$word" > "\${SPRY_TERMINATION_LOG:-/dev/termination-log}"
  fi
  exit
fi
exec node "\${0%/*}/builder.cjs" "$@"
`;
