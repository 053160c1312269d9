/** Requests to a Function while a test changes it. */
import { type Answer } from "./calls.ts";
import { pause } from "./platform.ts";

interface Gateway {
  call(host: string): Promise<Answer>;
}

/** Requests one after another, some at a time, until it is stopped. */
export function requestsTo(platform: Gateway, host: string, connections = 4) {
  const failures: (Answer | string)[] = [];
  let answered = 0;
  const over = new AbortController();
  const clients = Array.from({ length: connections }, async () => {
    while (!over.signal.aborted) {
      try {
        const answer = await platform.call(host);
        if (answer.status === 200) answered++;
        else failures.push(answer);
      } catch (error) {
        failures.push(String(error));
      }
      await pause(25);
    }
  });
  return {
    async stop() {
      over.abort();
      await Promise.all(clients);
      return { answered, failures };
    },
  };
}
