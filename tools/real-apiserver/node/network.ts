/** The line between the machine and its node: a pair of virtual interfaces with private addresses at its ends. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { type BackgroundProcess } from "../background-process.ts";
import { Problem } from "../problem.ts";
import { command } from "./command.ts";
import { inNamespaces } from "./namespaces.ts";

export interface NodeNetwork {
  /** The machine's end of the line, by which it is found again. */
  link: string;
  /** Of the machine, as Pods see it. */
  hostAddress: string;
  /** Of the node; API server, kubelet and NodePorts listen there. */
  address: string;
  /** The interface that leads out of the machine, and what `forwarding` was set to before; absent without one. */
  uplink?: { name: string; forwarding: string };
}

/** Pods get theirs from the first, Services from the second. */
export const podCidr = "10.244.0.0/24";
export const serviceCidr = "10.96.0.0/16";
export const clusterDns = "10.96.0.10";

const lines = 64;

/** Takes the first of the lines 10.200.0.0/30, 10.200.0.4/30, ... that is free. */
export async function connect(first: BackgroundProcess): Promise<NodeNetwork> {
  const taken = await command("ip", ["-4", "-o", "address", "show"]);
  for (let index = 0; index < lines; index++) {
    const network = {
      link: `spry${index}`,
      hostAddress: `10.200.0.${index * 4 + 1}`,
      address: `10.200.0.${index * 4 + 2}`,
    };
    if (taken.includes(` ${network.hostAddress}/`)) continue;
    // The name is the lock: of two that try, one makes it.
    const pair = ["link", "add", network.link, "type", "veth", "peer", "name", "eth0"];
    const added = await command("ip", [...pair, "netns", String(first.pid)]).then(
      () => true,
      (error: Error) => {
        if (/exists/i.test(error.message)) return false;
        throw error;
      },
    );
    if (added) return configure(first, network);
  }
  throw new Problem("connecting a node: all its addresses are in use", "end another cluster first");
}

async function configure(first: BackgroundProcess, network: NodeNetwork): Promise<NodeNetwork> {
  const { link, hostAddress, address } = network;
  const inside = (...args: string[]) => command(...inNamespaces(first, "ip", args));
  await command("ip", ["address", "add", `${hostAddress}/30`, "dev", link]);
  await command("ip", ["link", "set", link, "up"]);
  await inside("address", "add", `${address}/30`, "dev", "eth0");
  await inside("link", "set", "eth0", "up");
  await inside("route", "add", "default", "via", hostAddress);
  const name = /\bdev (\S+)/.exec(await command("ip", ["-4", "route", "show", "default"]))?.[1];
  if (name === undefined) return network;
  const uplink = { name, forwarding: readFileSync(forwardingOf(name), "utf8").trim() };
  writeFileSync(forwardingOf(name), "1");
  writeFileSync(forwardingOf(link), "1");
  const connected = { ...network, uplink };
  for (const rule of rulesOf(connected)) await command("iptables", ["-w", ...rule("-A")]);
  return connected;
}

/** Puts back what `connect` changed on the machine; what is gone already is no error. */
export async function disconnect(network: NodeNetwork): Promise<void> {
  const { link, uplink } = network;
  if (uplink) {
    for (const rule of rulesOf(network)) {
      await command("iptables", ["-w", ...rule("-D")]).catch(() => {});
    }
    if (existsSync(forwardingOf(uplink.name))) {
      writeFileSync(forwardingOf(uplink.name), uplink.forwarding);
    }
  }
  await command("ip", ["link", "delete", link]).catch(() => {});
}

/** Pods may call out, under the machine's address. */
function rulesOf({ link, address }: NodeNetwork): ((action: "-A" | "-D") => string[])[] {
  const comment = ["-m", "comment", "--comment", link];
  return [
    (action) => [
      "-t",
      "nat",
      action,
      "POSTROUTING",
      "-s",
      address,
      "!",
      "-o",
      link,
      ...comment,
      "-j",
      "MASQUERADE",
    ],
    (action) => [action, "FORWARD", "-i", link, ...comment, "-j", "ACCEPT"],
    (action) => [action, "FORWARD", "-o", link, ...comment, "-j", "ACCEPT"],
  ];
}

const forwardingOf = (link: string) => `/proc/sys/net/ipv4/conf/${link}/forwarding`;
