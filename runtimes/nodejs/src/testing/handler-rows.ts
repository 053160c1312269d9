import { expect } from "vitest";
import { send, startFunction } from "./running-function.ts";

/** A Function, and what it answers when it is asked for `/a/b?x=1&x=2`. */
export interface Row {
  name: string;
  code: string;
  env?: Record<string, string>;
  request?: { method?: string; headers?: Record<string, string>; body?: string };
  status?: number;
  body: string;
  headers?: Record<string, unknown>;
}

export async function expectAnswer(row: Row): Promise<void> {
  const { code, env = {}, request = {}, status = 200, body, headers = {} } = row;
  const { url } = await startFunction(code, env);
  const answer = await send(`${url}/a/b?x=1&x=2`, request);
  expect({ status: answer.status, body: answer.body }).toEqual({ status, body });
  expect(answer.headers).toMatchObject(headers);
}
