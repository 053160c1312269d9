import { type Command } from "commander";
import { UserError } from "../user-error.ts";

/** Commands whose first argument is a Function. */
const ofFunctions = (command: Command): boolean =>
  ["name", "names"].includes(command.registeredArguments[0]?.name() ?? "");

/** Prints a script for a shell: `source <(spry completion bash)`. */
export function completion(shell: string, program: Command): void {
  const scripts: Record<string, (program: Command) => string> = { bash, zsh, fish };
  const script = Object.hasOwn(scripts, shell) ? scripts[shell] : undefined;
  if (!script) throw new UserError(`${shell} is not a known shell`, "use bash, zsh or fish");
  console.log(script(program));
}

const visible = (program: Command): Command[] => [...program.commands];
const flagsOf = (command: Command): string[] =>
  command.options.flatMap(({ long, short }) => [long, short].filter((flag) => flag != null));

function bash(program: Command): string {
  const global = flagsOf(program).join(" ");
  const cases = visible(program).map((command) => {
    const inner = command.commands.map((each) => each.name());
    const words = [...inner, ...flagsOf(command), ...flagsOf(program)].join(" ");
    const more = ofFunctions(command) ? " $(spry get -o name 2>/dev/null | sed 's#.*/##')" : "";
    return `    ${command.name()}) words="${words}${more}" ;;`;
  });
  return `# bash completion for spry: source <(spry completion bash)
_spry() {
  local current="\${COMP_WORDS[COMP_CWORD]}" command="\${COMP_WORDS[1]}" words
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="${visible(program)
      .map((each) => each.name())
      .join(" ")} ${global}"
  else
    case "$command" in
${cases.join("\n")}
    *) words="" ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _spry spry`;
}

function zsh(program: Command): string {
  return `#compdef spry\nautoload -U +X bashcompinit && bashcompinit\n${bash(program)}`;
}

const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`\'`)}'`;

function fish(program: Command): string {
  const lines = visible(program).flatMap((command) => {
    const name = command.name();
    const there = `-n "__fish_seen_subcommand_from ${name}"`;
    return [
      `complete -c spry -n __fish_use_subcommand -a ${name} -d ${quoted(command.description())}`,
      ...command.options.map(
        ({ long, description }) =>
          `complete -c spry ${there} -l ${(long ?? "").replace(/^--/, "")} -d ${quoted(description)}`,
      ),
      ...(ofFunctions(command)
        ? [`complete -c spry ${there} -a "(spry get -o name 2>/dev/null | sed 's#.*/##')"`]
        : []),
    ];
  });
  return ["# fish completion for spry: spry completion fish | source", ...lines].join("\n");
}
