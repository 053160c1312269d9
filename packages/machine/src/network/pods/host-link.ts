import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { serviceNetwork } from "../cluster-view.ts";
import { type AddressBlock } from "./address-block.ts";
import { findProgram, runCommand } from "./commands.ts";

export const namespaceDir = "/run/netns";
/** Interfaces whose forwarding a platform has turned on, for the last one to turn off. */
const forwardingDir = "/run/spry/forwarding";
const hairpinMac = "ee:ee:ee:ee:ee:ee";
export { hairpinMac as routerMac };

const tableOf = (name: string) => name.replace("-", "_");

/**
 * A table without its interface is left over from a platform that has ended: it protects nothing, and would drop
 * packets from Pods of a later platform with the same addresses.
 */
export async function removeStaleTables(nft: string): Promise<void> {
  const tables = await runCommand(nft, ["list", "tables", "ip"]);
  const live = new Set(interfaces("spry-").map(tableOf));
  for (const [, table = ""] of tables.matchAll(/^table ip (spry_[0-9a-f]{8})$/gm))
    if (!live.has(table)) await runCommand(nft, ["delete", "table", "ip", table]).catch(() => {});
}

export interface HostLinkOptions {
  /** Name of the router's namespace and of the interface that leads to it. */
  name: string;
  block: AddressBlock;
  ip: string;
  nft: string;
}

/** What the machine itself gets: one interface, two routes, one nftables table. */
export class HostLink {
  readonly #options: HostLinkOptions;

  constructor(options: HostLinkOptions) {
    this.#options = options;
  }

  get #table(): string {
    return tableOf(this.#options.name);
  }

  get isUp(): boolean {
    const { name } = this.#options;
    return existsSync(path.join(namespaceDir, name)) && existsSync(`/sys/class/net/${name}`);
  }

  /** Makes the router's namespace and the way to it. */
  async create(): Promise<void> {
    const { name, block, ip } = this.#options;
    const mtu = smallestMtu();
    const commands = [
      `netns add ${name}`,
      `link add ${name} mtu ${mtu} type veth peer name host0 mtu ${mtu} netns ${name}`,
      `address add ${block.host} peer ${block.router}/32 dev ${name}`,
      `link set ${name} up`,
      `route add ${block.cidr} via ${block.router} dev ${name}`,
    ];
    await runCommand(ip, ["-batch", "-"], `${commands.join("\n")}\n`);
    const inside = [
      "link set lo up",
      `address add ${block.router} peer ${block.host}/32 dev host0`,
      "link set host0 up",
      `route add default via ${block.host} dev host0`,
    ];
    await this.inRouter("ip -batch - && echo 1 > /proc/sys/net/ipv4/ip_forward", inside);
  }

  /** A shell's line in the router's namespace. */
  inRouter(line: string, input: readonly string[] = []): Promise<string> {
    const { ip, name } = this.#options;
    const args = ["netns", "exec", name, "/bin/sh", "-c", line];
    return runCommand(ip, args, `${input.join("\n")}\n`);
  }

  /** Lets Pods reach the outside, and nothing reach them. Set again at each start: the machine may have changed. */
  async openMachine(): Promise<void> {
    const { name, block, ip, nft } = this.#options;
    const turnedOn = this.#forward();
    const others = turnedOn.map((each) => `"${each}"`).join(", ");
    const table = `table ip ${this.#table}`;
    const rules = `${table}
delete ${table}
${table} {
  chain postrouting {
    type nat hook postrouting priority 100; policy accept;
    ip saddr ${block.cidr} oifname != "spry-*" masquerade
  }
  chain forward {
    type filter hook forward priority 0; policy accept;
    iifname "${name}" accept
    oifname "${name}" ct state established,related accept
    oifname "${name}" drop
    ${others ? `iifname { ${others} } oifname != "spry-*" drop` : ""}
  }
  chain input {
    type filter hook input priority 0; policy accept;
    ip daddr ${block.host} iifname != { "lo", "${name}" } drop
  }
}
`;
    await runCommand(nft, ["-f", "-"], rules);
    // For the machine's own programs, and for Pods on its network. Another platform may have it already.
    const toServices = [serviceNetwork, "via", block.router, "dev", name];
    await runCommand(ip, ["route", "add", ...toServices]).catch(() => {});
    await this.#firewall("-I");
  }

  /** A firewall that forwards nothing by default (Docker's, for example) gets rules for the Pods. */
  async #firewall(action: "-I" | "-D"): Promise<void> {
    const { name } = this.#options;
    const iptables = findProgram("iptables");
    // Asked where there are no rules, it would leave empty tables behind.
    if (iptables === undefined || !(await this.#hasFilter())) return;
    const directions = [
      ["FORWARD", "-i"],
      ["FORWARD", "-o"],
      ["INPUT", "-i"],
    ];
    for (const [chain = "", side = ""] of directions) {
      const rule = [chain, side, name, "-j", "ACCEPT"];
      const isThere = await runCommand(iptables, ["-C", ...rule]).then(
        () => true,
        () => false,
      );
      if (action === "-D" ? !isThere : isThere) continue;
      const policy =
        action === "-D" ? "" : await runCommand(iptables, ["-S", chain]).catch(() => "");
      if (action === "-D" || policy.startsWith(`-P ${chain} DROP`))
        await runCommand(iptables, [action, ...rule]).catch(() => {});
    }
  }

  async #hasFilter(): Promise<boolean> {
    const tables = await runCommand(this.#options.nft, ["list", "tables", "ip"]);
    const legacy = "/proc/net/ip_tables_names";
    const names = existsSync(legacy) ? readFileSync(legacy, "latin1").split("\n") : [];
    return /^table ip filter$/m.test(tables) || names.includes("filter");
  }

  /** Turns on forwarding where it is off; returns the interfaces that forwarded nothing before. */
  #forward(): string[] {
    mkdirSync(forwardingDir, { recursive: true });
    writeFileSync(forwardingFile(this.#options.name), "1");
    for (const name of interfaces()) {
      if (readFileSync(forwardingFile(name), "latin1").trim() === "1") continue;
      writeFileSync(path.join(forwardingDir, name), "");
      writeFileSync(forwardingFile(name), "1");
    }
    return readdirSync(forwardingDir);
  }

  /** Takes everything away again. */
  async remove(): Promise<void> {
    const { name, ip, nft } = this.#options;
    await runCommand(nft, ["delete", "table", "ip", this.#table]).catch(() => {});
    await this.#firewall("-D");
    await runCommand(ip, ["link", "delete", name]).catch(() => {});
    await runCommand(ip, ["netns", "delete", name]).catch(() => {});
    if (interfaces("spry-").length > 0 || !existsSync(forwardingDir)) return;
    // Another platform that ends may be doing the same.
    for (const other of readdirSync(forwardingDir))
      if (existsSync(forwardingFile(other))) writeFileSync(forwardingFile(other), "0");
    rmSync(forwardingDir, { recursive: true, force: true });
  }
}

const forwardingFile = (name: string) => `/proc/sys/net/ipv4/conf/${name}/forwarding`;

/** Interfaces that routes lead to, without those to Pods; with a prefix, those of that name. */
function interfaces(prefix?: string): string[] {
  if (prefix !== undefined)
    return readdirSync("/sys/class/net").filter((name) => name.startsWith(prefix));
  const routes = readFileSync("/proc/net/route", "latin1").trim().split("\n").slice(1);
  const names = new Set(routes.map((line) => line.split("\t")[0] ?? ""));
  return [...names].filter((name) => name !== "" && name !== "lo" && !name.startsWith("spry-"));
}

function smallestMtu(): number {
  const sizes = interfaces().map((name) =>
    Number(readFileSync(`/sys/class/net/${name}/mtu`, "latin1")),
  );
  return Math.min(1500, ...sizes.filter((size) => size >= 576));
}
