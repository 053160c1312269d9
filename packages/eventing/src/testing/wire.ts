import { type Transport, transportOf } from "@spry/kube";

/** The way to an API server, which can be cut: nothing is answered then, and what was under way breaks. */
export class Wire {
  readonly transport: Transport;
  #isCut = false;
  #open = new AbortController();

  constructor(transport: Transport) {
    const refuseWhileCut = () => {
      if (this.#isCut)
        throw Object.assign(new Error("connect ECONNREFUSED 127.0.0.1:6443"), {
          code: "ECONNREFUSED",
        });
    };
    const signalWith = (signal: AbortSignal | null | undefined) =>
      AbortSignal.any([this.#open.signal, ...(signal ? [signal] : [])]);
    const { ask } = transport;
    this.transport = transportOf(
      async (request) => {
        refuseWhileCut();
        return transport(new Request(request, { signal: signalWith(request.signal) }));
      },
      ask &&
        (async (request) => {
          refuseWhileCut();
          return ask({ ...request, signal: signalWith(request.signal) });
        }),
    );
  }

  cut(): void {
    this.#isCut = true;
    this.#open.abort(new Error("socket hang up"));
  }

  mend(): void {
    this.#isCut = false;
    this.#open = new AbortController();
  }
}
