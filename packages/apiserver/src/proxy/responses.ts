import { type ClientRequest, type IncomingMessage } from "node:http";
import { messageOf, type StatusError } from "@spry/kube";

/** Until the response begins; its body has no time limit. */
const headTimeoutMs = 600_000;

/** The beginning of the response to a request; rejects with what `failure` makes of the reason why there is none. */
export function responseTo(
  sent: ClientRequest,
  failure: (why: string) => StatusError,
  withinMs = headTimeoutMs,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const fail = (why: string) => {
      reject(failure(why));
      sent.destroy();
    };
    const timer = setTimeout(() => fail(`no response within ${withinMs / 1000} s`), withinMs);
    for (const event of ["response", "upgrade", "close"])
      sent.once(event, () => clearTimeout(timer));
    sent.once("response", resolve);
    sent.on("error", (error) => fail(messageOf(error)));
  });
}
