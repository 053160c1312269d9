import { createHash } from "node:crypto";
import { readdirSync } from "node:fs";
import path from "node:path";
import { type Logger, messageOf } from "@spry/kube";
import { AddressBlock } from "./address-block.ts";
import { findProgram, runCommand } from "./commands.ts";
import { claimNetwork, forgetNetwork, removeAbandonedNetworks } from "./network-owners.ts";
import { HostLink, namespaceDir, removeStaleTables, routerMac } from "./host-link.ts";

export interface PodNetworkOptions {
  /** Names everything after it, so that platforms never meet. */
  dataDir: string;
  log: Logger;
}

/** How many namespaces wait for Pods. */
const spare = 4;
/**
 * How long to wait before a network that was taken from the reserve is replaced: until then its Pod starts, which a
 * client may be waiting for.
 */
const refillAfterMs = 250;
/** What Pods send to; the router answers for it without having it. */
const nextHop = "169.254.1.1";

/**
 * A network namespace per Pod, each with one veth into the router's namespace, where packets are
 * routed and filtered (docs/adr/0006). Namespaces are made ahead of Pods. All of it stays while the
 * platform is away, so that its Pods go on talking; `close` removes it.
 */
export class PodNetwork {
  readonly block: AddressBlock;
  readonly #name: string;
  readonly #ip: string;
  readonly #nft: string;
  readonly #log: Logger;
  readonly #host: HostLink;
  readonly #used = new Set<number>();
  readonly #ready: number[] = [];
  #next: number;
  #filling: Promise<void> | undefined;
  #refill: NodeJS.Timeout | undefined;
  #closed = false;

  private constructor(name: string, block: AddressBlock, programs: Programs, log: Logger) {
    this.#name = name;
    this.block = block;
    this.#ip = programs.ip;
    this.#nft = programs.nft;
    this.#log = log;
    this.#host = new HostLink({ name, block, ...programs });
    this.#next = Math.floor(Math.random() * block.podCount);
  }

  /** Brings the network up, or takes over what an earlier platform left. Throws where it cannot be had. */
  static async open({ dataDir, log }: PodNetworkOptions): Promise<PodNetwork> {
    const ip = findProgram("ip");
    if (ip === undefined) throw new Error("ip is missing: install iproute2");
    const nft = findProgram("nft");
    if (nft === undefined) throw new Error("nft is missing: install nftables");
    await removeStaleTables(nft);
    const hash = createHash("sha256").update(dataDir).digest();
    const name = nameOf(hash);
    await claimNetwork(name);
    await removeAbandonedNetworks(name, (other) => {
      log.info({ network: other }, "removing what a platform that has ended has left");
      return new PodNetwork(other, new AddressBlock(0), { ip, nft }, log).close();
    }).catch((error: unknown) =>
      log.warn({ error: messageOf(error) }, "removing what platforms have left failed"),
    );
    const block = await freeBlock(ip, name, hash.readUInt16BE(8));
    const network = new PodNetwork(name, block, { ip, nft }, log);
    if (!network.#host.isUp) {
      await network.#removeAll();
      await network.#host.create();
    }
    try {
      await network.#host.openMachine();
      return network;
    } catch (error) {
      await network.close();
      throw error;
    }
  }

  /** For a sandbox of another kind on the same data directory. */
  static async remove(dataDir: string, log: Logger): Promise<void> {
    const name = nameOf(createHash("sha256").update(dataDir).digest());
    const [ip, nft] = [findProgram("ip"), findProgram("nft")];
    const isThere = namespaces().some((each) => each === name || each.startsWith(`${name}-`));
    if (!isThere || ip === undefined || nft === undefined) return;
    await new PodNetwork(name, new AddressBlock(0), { ip, nft }, log).close();
  }

  /** A free address with its namespace. */
  async take(): Promise<string> {
    let index = this.#ready.shift();
    while (index === undefined) {
      await this.#fill();
      index = this.#ready.shift();
    }
    this.#used.add(index);
    this.#refill ??= setTimeout(() => this.#refillNow(), refillAfterMs).unref();
    return this.block.pod(index);
  }

  #refillNow(): void {
    this.#refill = undefined;
    this.#fill().catch((error: unknown) =>
      this.#log.warn({ error: messageOf(error) }, "preparing networks for Pods failed"),
    );
  }

  /** Makes ready what the first Pods will take. */
  prepare(): Promise<void> {
    return this.#fill();
  }

  /** The namespace of a Pod that had its address before; created again when it does not exist any more. */
  async keep(address: string): Promise<boolean> {
    const index = this.block.indexOf(address);
    if (index === undefined || this.#used.has(index)) return false;
    this.#used.add(index);
    if (!namespaces().includes(this.#podName(index))) await this.#create(index);
    return true;
  }

  /** Path of a Pod's namespace. */
  namespaceOf(address: string): string {
    return path.join(namespaceDir, this.#podName(this.block.indexOf(address) ?? -1));
  }

  async release(address: string): Promise<void> {
    const index = this.block.indexOf(address);
    if (index === undefined || !this.#used.has(index)) return;
    await this.#remove(this.#podName(index));
    this.#used.delete(index);
  }

  /** Removes namespaces that no Pod has; to be called when all that are wanted have been kept. */
  async removeStrays(): Promise<void> {
    const known = new Set([...this.#used, ...this.#ready].map((index) => this.#podName(index)));
    const strays = namespaces().filter(
      (name) => name.startsWith(`${this.#name}-`) && !known.has(name),
    );
    for (const name of strays) await this.#remove(name);
  }

  /** Replaces the router's rules, all at once. */
  async applyRules(ruleset: string): Promise<void> {
    await this.#host.inRouter(`${this.#nft} -f -`, [ruleset]);
  }

  /** Removes all of it. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#refill);
    await this.#filling?.catch(() => {});
    await this.#removeAll();
    forgetNetwork(this.#name);
  }

  async #removeAll(): Promise<void> {
    for (const name of namespaces())
      if (name.startsWith(`${this.#name}-`)) await this.#remove(name);
    await this.#host.remove();
  }

  #fill(): Promise<void> {
    this.#filling ??= this.#fillUp().finally(() => {
      this.#filling = undefined;
    });
    return this.#filling;
  }

  async #fillUp(): Promise<void> {
    while (this.#ready.length < spare && !this.#closed) {
      const index = this.#freeIndex();
      await this.#create(index);
      this.#ready.push(index);
    }
  }

  /** Not the one just given back: its connections may still be known. */
  #freeIndex(): number {
    for (let tried = 0; tried < this.block.podCount; tried++) {
      this.#next = (this.#next + 1) % this.block.podCount;
      // One that is there already may be that of a Pod which is not known yet.
      const isFree = !this.#used.has(this.#next) && !this.#ready.includes(this.#next);
      if (isFree && !namespaces().includes(this.#podName(this.#next))) return this.#next;
    }
    throw new Error(`no address in ${this.block.cidr} is free: too many Pods`);
  }

  #podName(index: number): string {
    return `${this.#name}-${index}`;
  }

  /** One shell for all of it: to start a program stops this one for some milliseconds. */
  async #create(index: number): Promise<void> {
    const name = this.#podName(index);
    const address = this.block.pod(index);
    const outside = [
      `netns add ${name}`,
      `link add p${index} netns ${this.#name} address ${routerMac} type veth peer name eth0 netns ${name}`,
    ];
    const inRouter = [`link set p${index} up`, `route replace ${address}/32 dev p${index}`];
    const inside = [
      "link set lo up",
      `address add ${address}/32 dev eth0`,
      "link set eth0 up",
      `neighbour add ${nextHop} lladdr ${routerMac} dev eth0 nud permanent`,
      `route add ${nextHop} dev eth0 scope link`,
      `route add default via ${nextHop} dev eth0`,
    ];
    // As containerd has it: the port of a Pod is its own, so that nothing below 1024 needs protection.
    const open = "echo 0 > /proc/sys/net/ipv4/ip_unprivileged_port_start";
    await this.#shell(
      batch(`"$0" -batch -`, outside),
      batch(`"$0" -netns ${this.#name} -batch -`, inRouter),
      batch(`"$0" netns exec ${name} /bin/sh -c '"$0" -batch - && ${open}' "$0"`, inside),
    );
  }

  /** The veth goes with the namespace, if nothing runs in it any more; else with this. */
  async #remove(name: string): Promise<void> {
    const index = name.slice(this.#name.length + 1);
    await this.#shell(
      `"$0" -netns ${this.#name} link delete p${index} || true`,
      `"$0" netns delete ${name} || true`,
    ).catch(() => {});
  }

  /** Lines of a shell to which `$0` is `ip`; the first that fails ends it. */
  async #shell(...lines: string[]): Promise<void> {
    await runCommand("/bin/sh", ["-c", ["set -e", ...lines].join("\n"), this.#ip]);
  }
}

/** A command that is given these lines. */
function batch(command: string, lines: readonly string[]): string {
  return [`${command} <<'END'`, ...lines, "END"].join("\n");
}

interface Programs {
  ip: string;
  nft: string;
}

function nameOf(hash: Buffer): string {
  return `spry-${hash.toString("hex").slice(0, 8)}`;
}

function namespaces(): string[] {
  try {
    return readdirSync(namespaceDir);
  } catch {
    return [];
  }
}

/** The block that this platform has had, or one that the machine's routes know nothing of. */
async function freeBlock(ip: string, name: string, preferred: number): Promise<AddressBlock> {
  const routes = JSON.parse((await runCommand(ip, ["-json", "route", "show"])) || "[]") as {
    dst: string;
    dev?: string;
  }[];
  const blocks = Array.from(
    { length: AddressBlock.count },
    (_, i) => new AddressBlock(preferred + i),
  );
  const mine = new Set(routes.flatMap(({ dst, dev }) => (dev === name ? dst : [])));
  const others = routes.filter(({ dst, dev }) => dev !== name && dst.startsWith("10.244."));
  const block =
    blocks.find(({ cidr }) => mine.has(cidr)) ??
    blocks.find((each) => !others.some(({ dst }) => overlaps(dst, each)));
  if (block) return block;
  throw new Error("no block of 10.244.0.0/16 is free on this machine");
}

function overlaps(cidr: string, block: AddressBlock): boolean {
  const [address = "", bits = "32"] = cidr.split("/");
  if (Number(bits) <= 16) return true;
  const third = Number(address.split(".")[2]) >> 2;
  const span = Number(bits) >= 22 ? 1 : 2 ** (22 - Number(bits));
  return block.number >= third && block.number < third + span;
}
