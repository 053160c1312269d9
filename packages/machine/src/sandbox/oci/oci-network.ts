import { createServer, connect, type Server } from "node:net";
import { type Logger } from "@spry/kube";
import { type ClusterView } from "../../network/cluster-view.ts";
import { NameServer } from "../../network/dns/name-server.ts";
import { PodNetwork } from "../../network/pods/pod-network.ts";
import { rulesetOf } from "../../network/pods/ruleset.ts";

/** The network of a sandbox's Pods, the names that they know, and the ways from them to the machine. */
export class OciNetwork {
  readonly pods: PodNetwork;
  readonly #names: NameServer;
  readonly #offered: Server[] = [];
  #rules = "";

  private constructor(pods: PodNetwork, names: NameServer) {
    this.pods = pods;
    this.#names = names;
  }

  /** Throws, saying what is missing, where Pods cannot have networks of their own. */
  static async open(dataDir: string, log: Logger): Promise<OciNetwork> {
    const pods = await PodNetwork.open({ dataDir, log });
    try {
      const network = new OciNetwork(pods, await NameServer.listen(pods.block.host));
      return network;
    } catch (error) {
      await pods.close();
      throw error;
    }
  }

  /** The machine's address, as Pods see it. */
  get hostAddress(): string {
    return this.pods.block.host;
  }

  /** Until the first time, what an earlier platform has put there goes on. */
  async apply(view: ClusterView): Promise<void> {
    this.#names.update(view.services);
    const rules = rulesetOf(view, this.pods.block, this.#names.port);
    if (rules === this.#rules) return;
    await this.pods.applyRules(rules);
    this.#rules = rules;
  }

  /** Lets Pods reach what listens on this port of 127.0.0.1, under the machine's address. */
  async offer(port: number): Promise<void> {
    const server = createServer((incoming) => {
      const outgoing = connect({ host: "127.0.0.1", port });
      incoming.pipe(outgoing).pipe(incoming);
      const end = () => {
        incoming.destroy();
        outgoing.destroy();
      };
      for (const socket of [incoming, outgoing]) socket.on("error", end);
    });
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen({ host: this.hostAddress, port }, resolve);
    });
    server.unref();
    this.#offered.push(server);
  }

  async close(): Promise<void> {
    this.#names.close();
    for (const server of this.#offered) server.close();
    await this.pods.close();
  }
}
