/** Program: publishes events to a port of this machine, as fast as it can or at a rate, and prints what it has measured as JSON. */
import { Agent, request as httpRequest } from "node:http";
import { setTimeout as pause } from "node:timers/promises";

const [, , portText = "", mode = "", first = "", second = ""] = process.argv;
const port = Number(portText);
let nextId = 0;

const result =
  mode === "rate"
    ? await rate(Number(first), Number(second))
    : await paced(Number(first), Number(second));
console.log(JSON.stringify(result));

function publish(agent: Agent): Promise<void> {
  const id = `${mode}-${process.pid}-${nextId++}`;
  const body = `{"specversion":"1.0","id":"${id}","source":"shop","type":"order.created.v1","data":{}}`;
  return new Promise((resolve, reject) => {
    const headers = { "content-type": "application/cloudevents+json" };
    const options = { port, host: "127.0.0.1", method: "POST", path: "/publish", agent, headers };
    const request = httpRequest(options, (response) => {
      response.resume();
      if (response.statusCode === 204) response.once("end", resolve);
      else reject(new Error(`HTTP ${response.statusCode}`));
    });
    request.once("error", reject);
    request.end(body);
  });
}

/** In a second. */
async function rate(clients: number, count: number): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: clients });
  let left = count;
  const begin = performance.now();
  const client = async () => {
    while (left-- > 0) await publish(agent);
  };
  await Promise.all(Array.from({ length: clients }, client));
  agent.destroy();
  return count / ((performance.now() - begin) / 1_000);
}

/** Milliseconds of each, counted from when it should have been sent. */
async function paced(perSecond: number, seconds: number): Promise<number[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 256 });
  const times: number[] = [];
  const begin = performance.now();
  const all: Promise<void>[] = [];
  for (let n = 0; n < perSecond * seconds; n++) {
    const due = begin + (n * 1_000) / perSecond;
    if (due > performance.now() + 1) await pause(due - performance.now());
    all.push(publish(agent).then(() => void times.push(performance.now() - due)));
  }
  await Promise.all(all);
  agent.destroy();
  return times;
}
