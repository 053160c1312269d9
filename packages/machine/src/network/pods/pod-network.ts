import { createHash, randomBytes } from "node:crypto";
import { readdirSync } from "node:fs";
import path from "node:path";
import { type Logger, messageOf } from "@spry/kube";
import { AddressBlock } from "./address-block.ts";
import { CommandShell } from "./command-shell.ts";
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
/** How long networks that were given back wait to be removed together, for the same reason. */
const removeAfterMs = 1_000;
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
  readonly #shell = new CommandShell();
  readonly #used = new Set<number>();
  readonly #ready: number[] = [];
  /** Of those used, the ones to remove. */
  readonly #leaving = new Set<number>();
  #next: number;
  #filling: Promise<void> | undefined;
  #refill: NodeJS.Timeout | undefined;
  #removal: NodeJS.Timeout | undefined;
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
    const network = await PodNetwork.#bringUp(name, hash.readUInt16BE(8), { ip, nft }, log);
    try {
      await network.#host.openMachine();
      return network;
    } catch (error) {
      await network.close();
      throw error;
    }
  }

  /** Takes over what is there, or makes it. Another platform may take the same block in between: then the next one is free. */
  static async #bringUp(
    name: string,
    preferred: number,
    programs: Programs,
    log: Logger,
  ): Promise<PodNetwork> {
    for (let triesLeft = 5; ; triesLeft--) {
      const { block, isOwn } = await blockFor(programs.ip, name, preferred);
      const network = new PodNetwork(name, block, programs, log);
      if (isOwn && network.#host.isUp) return network;
      try {
        await network.#removeAll();
        await network.#host.create();
        return network;
      } catch (error) {
        if (triesLeft > 0) continue;
        await network.close();
        throw error;
      }
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

  /** Nothing may run in it any more. The address is free when the namespace has been removed. */
  release(address: string): void {
    const index = this.block.indexOf(address);
    if (index === undefined || !this.#used.has(index)) return;
    this.#leaving.add(index);
    this.#removal ??= setTimeout(() => void this.#removeLeaving(), removeAfterMs).unref();
  }

  async #removeLeaving(): Promise<void> {
    this.#removal = undefined;
    const leaving = [...this.#leaving];
    this.#leaving.clear();
    await this.#remove(leaving.map((index) => this.#podName(index)));
    for (const index of leaving) this.#used.delete(index);
  }

  /** Removes namespaces that no Pod has; to be called when all that are wanted have been kept. */
  async removeStrays(): Promise<void> {
    const known = new Set([...this.#used, ...this.#ready].map((index) => this.#podName(index)));
    const strays = namespaces().filter(
      (name) => name.startsWith(`${this.#name}-`) && !known.has(name),
    );
    await this.#remove(strays);
  }

  /** Replaces the router's rules, all at once. */
  async applyRules(ruleset: string): Promise<void> {
    await this.#shell.run(
      batch(`${this.#ip} netns exec ${this.#name} ${this.#nft} -f -`, [ruleset]),
    );
  }

  /** Removes all of it. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#refill);
    clearTimeout(this.#removal);
    await this.#filling?.catch(() => {});
    await this.#removeAll();
    this.#shell.close();
    forgetNetwork(this.#name);
  }

  async #removeAll(): Promise<void> {
    await this.#remove(namespaces().filter((name) => name.startsWith(`${this.#name}-`)));
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
    const ip = this.#ip;
    const steps = [
      batch(`${ip} -batch -`, outside),
      batch(`${ip} -netns ${this.#name} -batch -`, inRouter),
      batch(`${ip} netns exec ${name} /bin/sh -c '${ip} -batch - && ${open}'`, inside),
    ];
    await this.#shell.run(steps.join("\n"));
  }

  /** The veth goes with the namespace, if nothing runs in it any more; else with this. */
  async #remove(names: readonly string[]): Promise<void> {
    const steps = names.flatMap((name) => [
      `${this.#ip} -netns ${this.#name} link delete p${name.slice(this.#name.length + 1)} || true`,
      `${this.#ip} netns delete ${name} || true`,
    ]);
    await this.#shell.run(steps.join("\n")).catch(() => {});
  }
}

/** A command that is given these lines. Whatever they are, none of them ends the input: what follows would be the shell's. */
function batch(command: string, lines: readonly string[]): string {
  const end = `END-${randomBytes(12).toString("hex")}`;
  return [`${command} <<'${end}'`, ...lines, end].join("\n");
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
async function blockFor(
  ip: string,
  name: string,
  preferred: number,
): Promise<{ block: AddressBlock; isOwn: boolean }> {
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
  const own = blocks.find(({ cidr }) => mine.has(cidr));
  if (own) return { block: own, isOwn: true };
  const block = blocks.find((each) => !others.some(({ dst }) => overlaps(dst, each)));
  if (block) return { block, isOwn: false };
  throw new Error("no block of 10.244.0.0/16 is free on this machine");
}

function overlaps(cidr: string, block: AddressBlock): boolean {
  const [address = "", bits = "32"] = cidr.split("/");
  if (Number(bits) <= 16) return true;
  const third = Number(address.split(".")[2]) >> 2;
  const span = Number(bits) >= 22 ? 1 : 2 ** (22 - Number(bits));
  return block.number >= third && block.number < third + span;
}
