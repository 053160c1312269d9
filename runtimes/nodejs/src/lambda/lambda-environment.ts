/** The variables that AWS' runtime has, for Lambda handlers only. The region is for the user to name. */
import { readFileSync, statSync } from "node:fs";
import { basename, extname } from "node:path";
import { type Settings } from "../settings.ts";
import { memoryLimitInMB } from "./lambda-context.ts";

const maxBytes = 1_000_000;
const looksLike =
  /\blambdaHandler\b|\bexports\s*\.\s*handler\s*=|\bexport\s+(?:const|let|var|(?:async\s+)?function)\s+handler\b/;

/** Whether the code in that file is a Lambda handler, as far as can be seen before it is loaded. */
export function isLikelyLambda(path: string, { dialect }: Settings): boolean {
  if (dialect === "lambda") return true;
  const { size } = statSync(path);
  return size <= maxBytes && looksLike.test(readFileSync(path, "latin1"));
}

/** Sets those that the user has not set; returns what takes them away again. */
export function setLambdaEnvironment(
  directory: string,
  path: string,
  { functionName, handlerName }: Settings,
): () => void {
  const module = basename(path, extname(path));
  const values = {
    AWS_LAMBDA_FUNCTION_NAME: functionName,
    AWS_LAMBDA_FUNCTION_VERSION: "$LATEST",
    AWS_LAMBDA_FUNCTION_MEMORY_SIZE: memoryLimitInMB(),
    LAMBDA_TASK_ROOT: directory,
    _HANDLER: `${module}.${handlerName === "main" ? "handler" : handlerName}`,
  };
  const ours = Object.entries(values).filter(
    ([name, value]) => value !== "" && process.env[name] === undefined,
  );
  for (const [name, value] of ours) process.env[name] = value;
  return () => {
    for (const [name] of ours) Reflect.deleteProperty(process.env, name);
  };
}
