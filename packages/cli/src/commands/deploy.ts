import { connect, type Connection, type GlobalOptions } from "../connection.ts";
import { type Deployed, deployOne, type DeployOptions } from "../deploy/deploy-one.ts";
import { type DeployResult, reportResults } from "../deploy/results.ts";
import { Progress } from "../progress.ts";
import { type Project } from "../project/project.ts";
import { projectOf, type Target, targetsOf } from "../project/targets.ts";
import { checkedName } from "../project/checked-name.ts";
import { shellWord } from "../shell-word.ts";
import { inNamespace } from "../shown-namespace.ts";
import { explainedCommands, spryCommand } from "../shown-command.ts";
import { columnsOf, shortened } from "../terminal-width.ts";
import { UserError } from "../user-error.ts";

/** More than these would wait for each other's builds. */
const maxAtOnce = 4;
/** Of a name before a line in a terminal. */
const maxPrefix = 16;

/** Makes directories Functions: the files of each go to the registry as one layer, and the Function names them by digest. */
export async function deploy(
  directories: readonly string[],
  options: DeployOptions,
): Promise<void> {
  const progress = new Progress(options.json);
  progress.whenInterrupted("nothing was deployed");
  await progress.run(() => deployWith(directories, options, progress));
}

async function deployWith(
  given: readonly string[],
  options: DeployOptions,
  progress: Progress,
): Promise<void> {
  const directories = given.length === 0 ? ["."] : given;
  const targets = targetsOf(directories, options.function);
  const [only] = targets;
  if (only && targets.length === 1) await deploySingle(only, directories, options, progress);
  else await deployAll(targets, options, progress);
}

async function deploySingle(
  target: Target,
  directories: readonly string[],
  options: DeployOptions,
  progress: Progress,
): Promise<void> {
  const found = projectOf(target);
  if (options.name !== undefined && target.isMember) throw namedTwice();
  const project = named(found, options.name);
  const connection = await connectionsOf(options)(project.config.namespace);
  const onStored = () => {};
  const { url, isNew, isRunning } = await deployOne(project, {
    connection,
    options,
    progress,
    prefix: "",
    onStored,
  });
  if (url && !progress.isJson) console.log(url);
  if (isRunning && isNew && process.stderr.isTTY)
    progress.note(nextSteps(directories, `${project.name}${inNamespace(connection.namespace)}`));
}

/** Under the name that was given, or the one of its settings. */
function named({ guessed, ...project }: Project, name: string | undefined): Project {
  if (name !== undefined) return { ...project, name: checkedName(name) };
  if (guessed?.problem) throw guessed.problem;
  return { ...project, name: checkedName(project.name), ...(guessed && { guessed }) };
}

const namedTwice = (): UserError =>
  new UserError(
    "--name is for a directory with one Function",
    "the keys below functions of spry.yaml are the names; choose with --function NAME",
  );

/** At most four at a time; one that fails does not hide the others. */
async function deployAll(
  targets: readonly Target[],
  options: DeployOptions,
  progress: Progress,
): Promise<void> {
  if (options.name !== undefined) throw namedTwice();
  const connectionIn = connectionsOf(options);
  let stored = 0;
  const results: DeployResult[] = [];
  const waiting = targets.map((target, index) => ({ target, index }));
  const work = async () => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const { target, index } = next;
      results[index] = await resultOf(target.name, progress, async () => {
        const project = projectOf(target);
        return deployOne(project, {
          connection: await connectionIn(project.config.namespace),
          options,
          progress,
          prefix: `${shortened(project.name, columnsOf(process.stderr) && maxPrefix)}: `,
          onStored: () => {
            stored++;
            progress.whenInterrupted(whatContinues(stored, targets.length));
          },
        });
      });
    }
  };
  await Promise.all(Array.from({ length: maxAtOnce }, work));
  reportResults(results, progress);
}

/** A mistake of ours is a result, too, until all have ended. */
async function resultOf(
  name: string,
  progress: Progress,
  work: () => Promise<Deployed>,
): Promise<DeployResult> {
  try {
    return { name, deployed: await work() };
  } catch (error) {
    if (progress.isJson) progress.failed(error, `function/${name}`);
    else progress.note(`  ${name}: ✘ failed`);
    return { name, error };
  }
}

function whatContinues(stored: number, all: number): string {
  if (stored === all) return "the platform continues, and spry get shows the state";
  return `${stored} of ${all} Functions are stored: deploy again for the others`;
}

/** One for each namespace. */
function connectionsOf(options: GlobalOptions): (own?: string) => Promise<Connection> {
  const known = new Map<string | undefined, Promise<Connection>>();
  return (own) => {
    const namespace = options.namespace ?? own;
    const found =
      known.get(namespace) ??
      connect({ ...options, ...(namespace !== undefined && { namespace }) });
    known.set(namespace, found);
    return found;
  };
}

function nextSteps(directories: readonly string[], name: string): string {
  const place = directories
    .filter((each) => each !== ".")
    .map((each) => ` ${shellWord(each)}`)
    .join("");
  const rows: [string, string][] = [
    [`logs -f ${name}`, "what it writes"],
    [`deploy${place}`, "after each change"],
    [`describe ${name}`, "its state and its versions"],
  ];
  return `\nNext:\n\n${explainedCommands(rows.map(([command, comment]) => [spryCommand(command), comment]))}`;
}
