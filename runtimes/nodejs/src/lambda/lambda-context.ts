import { type Settings } from "../settings.ts";
import { memoryLimit } from "./memory-limit.ts";

export type Callback = (error: unknown, value?: unknown) => void;

/** The second argument of a Lambda handler. `endMs`: when its time is over, by `Date.now`. */
export function contextOf(
  settings: Settings,
  awsRequestId: string,
  endMs: number,
  callback: Callback,
) {
  const { functionName } = settings;
  return {
    functionName,
    functionVersion: "$LATEST",
    invokedFunctionArn: `arn:aws:lambda:local:000000000000:function:${functionName}`,
    memoryLimitInMB: memoryLimitInMB(),
    awsRequestId,
    logGroupName: `/aws/lambda/${functionName}`,
    logStreamName: process.env["HOSTNAME"] ?? "",
    callbackWaitsForEmptyEventLoop: false,
    getRemainingTimeInMillis: () => Math.max(0, endMs - Date.now()),
    done: callback,
    fail: (error: unknown) => callback(error ?? new Error("context.fail")),
    succeed: (value: unknown) => callback(null, value),
  };
}

let known: string | undefined;

/** Empty where no limit is known. */
export function memoryLimitInMB(): string {
  if (known !== undefined) return known;
  const limit = memoryLimit();
  known = limit === Infinity ? "" : String(Math.round(limit / 2 ** 20));
  return known;
}
