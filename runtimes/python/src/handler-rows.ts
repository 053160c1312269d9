import { expect } from "vitest";
import { type Call, PythonRuntime } from "./testing.ts";

/** A Function's files, and what it answers. */
export interface Row {
  name: string;
  files: Record<string, string>;
  env?: Record<string, string>;
  target?: string;
  call?: Call;
  status?: number;
  body: string | RegExp;
  headers?: Record<string, unknown>;
  output?: string;
}

export async function expectAnswer(row: Row): Promise<void> {
  const { files, env, target, call, status = 200, body, headers = {}, output } = row;
  await using runtime = await PythonRuntime.start(files, env);
  const answer = await runtime.call(target, call);
  expect({ status: answer.status, body: answer.body }).toEqual({
    status,
    body: body instanceof RegExp ? expect.stringMatching(body) : body,
  });
  expect(answer.headers).toMatchObject(headers);
  if (output) await expect.poll(() => runtime.output).toContain(output);
}
