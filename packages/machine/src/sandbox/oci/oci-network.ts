import { createServer, connect, type Server } from "node:net";
import { type Logger, messageOf } from "@spry/kube";
import { type ClusterView } from "../../network/cluster-view.ts";
import { NameServer } from "../../network/dns/name-server.ts";
import { PodNetwork } from "../../network/pods/pod-network.ts";
import { changesText, type NftTable, wholeText } from "../../network/pods/nft-tables.ts";
import { Rulesets } from "../../network/pods/ruleset.ts";

/** The network of a sandbox's Pods, the names that they know, and the ways from them to the machine. */
export class OciNetwork {
  readonly pods: PodNetwork;
  readonly #names: NameServer;
  readonly #offered: Server[] = [];
  /** Ports of the machine's address that another socket has, and the ones that stand in for them. */
  readonly #moved = new Map<number, number>();
  #view: ClusterView | undefined;
  readonly #rulesets = new Rulesets();
  /** What nftables have now; undefined before the first time, and when that is not certain. */
  #applied: NftTable | undefined;

  readonly #log: Logger;

  private constructor(pods: PodNetwork, names: NameServer, log: Logger) {
    this.pods = pods;
    this.#names = names;
    this.#log = log;
  }

  /** Throws, saying what is missing, where Pods cannot have networks of their own. */
  static async open(dataDir: string, log: Logger): Promise<OciNetwork> {
    const pods = await PodNetwork.open({ dataDir, log });
    try {
      const network = new OciNetwork(pods, await NameServer.listen(pods.block.host), log);
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

  /** Writes what has changed. Until the first time, what an earlier platform has put there goes on. */
  async apply(view: ClusterView): Promise<void> {
    this.#view = view;
    this.#names.update(view.services);
    const { block } = this.pods;
    const wanted = this.#rulesets.of(view, {
      block,
      dnsPort: this.#names.port,
      moved: this.#moved,
    });
    const before = this.#applied;
    const changes = before && changesText(before, wanted);
    if (changes === "") return void (this.#applied = wanted);
    this.#applied = undefined;
    try {
      await this.pods.applyRules(changes ?? wholeText(wanted));
    } catch (error) {
      if (changes === undefined) throw error;
      // Whatever is there instead of what should be: it is replaced.
      this.#log.warn(
        { error: messageOf(error) },
        "changing the rules failed: all are written again",
      );
      await this.pods.applyRules(wholeText(wanted));
    }
    this.#applied = wanted;
  }

  /**
   * Lets Pods reach what listens on this port of 127.0.0.1, under the machine's address. A connection to a Pod may have taken the
   * port there before; Pods are then led to another one.
   */
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
    try {
      await this.#listen(server, port);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
      this.#moved.set(port, await this.#listen(server, 0));
      if (this.#view) await this.apply(this.#view);
    }
    server.unref();
    this.#offered.push(server);
  }

  async #listen(server: Server, port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      server.once("error", reject);
      server.listen({ host: this.hostAddress, port }, () => {
        server.off("error", reject);
        // Of a connection that could not be accepted, for want of a descriptor: the next one may be.
        server.on("error", () => {});
        resolve((server.address() as { port: number }).port);
      });
    });
  }

  async close(): Promise<void> {
    this.#names.close();
    for (const server of this.#offered) server.close();
    await this.pods.close();
  }
}
