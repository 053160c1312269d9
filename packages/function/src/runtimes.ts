/** A language runtime that a Function may name. */
export interface Runtime {
  name: string;
  language: "nodejs" | "python";
  /** What runs it, as images label it (`io.spry.interpreter`). */
  interpreter: string;
  /** The file that the inline source becomes. */
  handlerFile: string;
  /** The file that the inline dependencies become. */
  dependencyFile: string;
  /** Dependencies that stand for "none". */
  noDependencies: string;
  /** The handler is `main(request, response)`, not `main(event, context)`. */
  requestHandler: boolean;
  deprecated: boolean;
  /** What to move to from a deprecated runtime. */
  successor?: string;
}

function nodejs(major: number, more: Partial<Runtime> = {}): Runtime {
  return {
    name: `nodejs${major}`,
    language: "nodejs",
    interpreter: `node@${major}`,
    handlerFile: "handler.js",
    dependencyFile: "package.json",
    noDependencies: "{}",
    requestHandler: false,
    deprecated: false,
    ...more,
  };
}

function python(version: string, more: Partial<Runtime> = {}): Runtime {
  return {
    name: `python${version.replace(".", "")}`,
    language: "python",
    interpreter: `python@${version}`,
    handlerFile: "handler.py",
    dependencyFile: "requirements.txt",
    noDependencies: "",
    requestHandler: false,
    deprecated: false,
    ...more,
  };
}

/** The runtimes a Function may name, oldest first. */
export const runtimes: readonly Runtime[] = [
  nodejs(20, { deprecated: true, successor: "nodejs24" }),
  nodejs(22),
  nodejs(24),
  nodejs(26, { requestHandler: true }),
  python("3.12"),
  python("3.14", { requestHandler: true }),
];

export const defaultRuntime = "nodejs24";

/** Runtimes of the past, refused with the name of the one to move to. */
export const retiredRuntimes: Readonly<Record<string, string>> = {
  nodejs6: "nodejs24",
  nodejs8: "nodejs24",
  nodejs10: "nodejs24",
  nodejs12: "nodejs24",
  nodejs14: "nodejs24",
  nodejs16: "nodejs24",
  nodejs18: "nodejs24",
  python38: "python312",
  python39: "python312",
};

export function findRuntime(name: string): Runtime | undefined {
  return runtimes.find((runtime) => runtime.name === name);
}

/** The runtime of a Function that has been validated. */
export function runtimeOf(fn: { spec: { runtime?: string } }): Runtime {
  const name = fn.spec.runtime ?? defaultRuntime;
  const runtime = findRuntime(name);
  if (!runtime) throw new Error(`runtime ${name} does not exist`);
  return runtime;
}

/** The warning for users of a deprecated runtime. */
export function deprecationOf(runtime: Runtime): string | undefined {
  if (!runtime.deprecated) return undefined;
  return `runtime ${runtime.name} is deprecated and will be removed: use ${runtime.successor}`;
}
