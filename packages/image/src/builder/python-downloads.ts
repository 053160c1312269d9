/** Packages that are fetched with a login, to be installed where there is none: with those that have to be built from source. */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { nothingStated } from "./careful-pip.ts";
import { type SourceFile } from "./function-source.ts";
import { downloadWheels, type PipRun } from "./pip.ts";
import { meaningfulLines, requirementsFile } from "./requirements-files.ts";
import { withoutLogins } from "./secrets.ts";
import { downloadWithSources } from "./source-downloads.ts";
import { UserError } from "./user-error.ts";

/** Of an installation in the directory of a build. */
export function placesIn(directory: string) {
  return {
    input: join(directory, "install"),
    home: join(directory, "home"),
    target: join(directory, "site-packages"),
    /** Packages from indexes with a login; only there where something has to be built from source. */
    wheels: join(directory, "wheels"),
  };
}

/** In the run's home: what pip said when it had the login, and would run no code. */
const firstFailure = "pip-with-login.txt";

/** What to say of a failure without the login; undefined where all there is has been fetched with it. */
export function noteOf(home: string): string | undefined {
  const file = join(home, firstFailure);
  if (!existsSync(file)) return undefined;
  return [
    "note: the index needs a login, so no code of packages is run, which could read it. Add a wheel to the index, or a source distribution with its PKG-INFO. With the login, pip reported:",
    readFileSync(file, "utf8"),
  ].join("\n");
}

/**
 * Gets packages where some have to be built from source: those too, or where that would take their code, all others.
 * Leaves requirements without a login, that find them.
 */
export async function fetchToBuild(
  requirements: readonly SourceFile[],
  directory: string,
  options: Pick<PipRun, "config" | "secrets">,
): Promise<void> {
  const { input, home, wheels } = placesIn(directory);
  mkdirSync(wheels, { recursive: true });
  const lines = requirements.flatMap(({ content }) => meaningfulLines(content.toString()));
  const settings = lines.filter((line) => indexOption.test(line));
  try {
    await downloadWithSources({ ...options, directory: input, home, target: wheels }, settings);
  } catch (error) {
    if (!(error instanceof UserError && error.message.includes(nothingStated))) throw error;
    writeFileSync(join(home, firstFailure), error.message.split("\n").slice(1).join("\n"));
    await fetchWheels(requirements, directory, options);
  }
  takeFromWheels(requirements, directory);
}

/** Of a requirements file: where packages are. */
const indexOption =
  /^(?:-[if]|--(?:index-url|extra-index-url|find-links|no-index|trusted-host|pre))(?:[\s=]|$)/;

/** One by one, since one without a wheel would keep all the others away. */
async function fetchWheels(
  requirements: readonly SourceFile[],
  directory: string,
  options: Pick<PipRun, "config" | "secrets">,
): Promise<void> {
  const { input, home, wheels } = placesIn(directory);
  const isOption = (line: string) => line.startsWith("-");
  for (const { path, content } of requirements) {
    const folder = join(input, dirname(path));
    const lines = meaningfulLines(content.toString());
    const settings = lines.filter((line) => isOption(line) && !/^(?:-r|--requirement)/.test(line));
    for (const line of lines.filter((each) => !isOption(each))) {
      const file = join(folder, "one-requirement.txt");
      writeFileSync(file, [...settings, line, ""].join("\n"));
      await downloadWheels({ ...options, directory: input, home, target: wheels }, file);
      rmSync(file);
    }
  }
}

/**
 * Adds the wheels to where pip looks: by a line, as an argument would stand for what a `pip.conf` says. The
 * requirements may name indexes too, and logins.
 */
function takeFromWheels(requirements: readonly SourceFile[], directory: string): void {
  const { input, wheels } = placesIn(directory);
  for (const { path, content } of requirements) {
    const text = withoutLogins(fromWheels(content.toString(), wheels));
    const more = path === requirementsFile ? `--find-links "${wheels}"\n` : "";
    writeFileSync(join(input, path), more + text);
  }
}

/** Requirements by URL (PEP 508) lead to the files that have been fetched from there. */
function fromWheels(text: string, wheels: string): string {
  return text.replace(
    /^([^-#\n].*?|)\b(https?:\/\/[^\s#?]+\/([\w.%+-]+))/gm,
    (whole, before: string, _url, name: string) =>
      existsSync(join(wheels, name)) ? `${before}file://${wheels}/${name}` : whole,
  );
}
