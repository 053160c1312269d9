import path from "node:path";
import { UserError } from "../user-error.ts";
import { filesExitCode } from "./complete.ts";

/** Prints a script for a shell: `source <(spry completion bash)`. The script asks `spry __complete` for each word. */
export function completion(given?: string): void {
  // The user's own shell, as far as it is known.
  const own = path.basename(process.env["SHELL"] ?? "");
  const shell = given ?? (Object.hasOwn(scripts, own) ? own : undefined);
  if (shell === undefined)
    throw new UserError("the shell is not known", "name it: `spry completion bash`, zsh or fish");
  const script = Object.hasOwn(scripts, shell) ? scripts[shell] : undefined;
  if (script === undefined)
    throw new UserError(`${shell} is not a known shell`, "use bash, zsh or fish");
  console.log(script);
}

// Candidates are never expanded by the shell: names of directories may contain what it would run.
const bash = `# bash completion for spry: source <(spry completion bash)
_spry() {
  local found line
  COMPREPLY=()
  found=$("$1" __complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null </dev/null)
  if [ $? -eq ${filesExitCode} ]; then
    compopt -o default 2>/dev/null
    return
  fi
  while IFS= read -r line; do
    [ -n "$line" ] || continue
    COMPREPLY+=("$line")
    case "$line" in
    */) compopt -o filenames -o nospace 2>/dev/null ;;
    *=) compopt -o nospace 2>/dev/null ;;
    esac
  done <<<"$found"
}
complete -F _spry spry`;

const zsh = `#compdef spry
# zsh completion for spry: source <(spry completion zsh), after compinit
_spry() {
  local found line word
  local -a plain shown open
  found=$("\${words[1]}" __complete --descriptions -- "\${(@)words[2,CURRENT]}" 2>/dev/null </dev/null)
  if [ $? -eq ${filesExitCode} ]; then
    _files
    return
  fi
  for line in "\${(@f)found}"; do
    word="\${line%%$'\\t'*}"
    [ -n "$word" ] || continue
    case "$word" in
    */|*=) open+=("$word") ;;
    *) plain+=("$word"); shown+=("\${line/$'\\t'/  -- }") ;;
    esac
  done
  compadd -S '' -a open
  compadd -l -d shown -a plain
}
# As a file of fpath, it is the function itself.
if [ "$funcstack[1]" = _spry ]; then _spry "$@"; else compdef _spry spry; fi`;

const fish = `# fish completion for spry: spry completion fish | source
function __spry_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l found ($words[1] __complete --descriptions -- $words[2..-1] 2>/dev/null </dev/null)
    if test $status -eq ${filesExitCode}
        __fish_complete_path (commandline -ct)
    else
        printf '%s\\n' $found
    end
end
complete -c spry -f -a '(__spry_complete)'`;

const scripts: Readonly<Record<string, string>> = { bash, zsh, fish };
