/**
 * Lets a Node.js process of the process sandbox call Services by their names and addresses. Loaded
 * with `--require` before the program: `net` and `dns` ask the files of `service-files.ts` first,
 * and the system about everything else. Nothing here may fail: a program without Services goes on.
 */
"use strict";

const { readFileSync } = require("node:fs");
const path = require("node:path");

const installed = Symbol.for("spry.services");
const label = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;
const full = ".svc.cluster.local";
/** With fewer dots the search list of a Pod's resolv.conf comes first (`ndots:5`). */
const maxSearched = 5;
/** Services of type ExternalName may name each other. */
const maxAliases = 8;

function install() {
  const net = require("node:net");
  const dns = require("node:dns");
  let own, all, self;

  /** Whether this process is a Pod's: one that waits for its Function has no Services until it has it. */
  function isPlaced() {
    if (own !== undefined) return true;
    if (!process.env.SPRY_SERVICES) return false;
    own = process.env.SPRY_SERVICES;
    all = path.dirname(own);
    self = process.env.SERVER_HOST;
    return true;
  }
  isPlaced();

  function read(...parts) {
    try {
      return JSON.parse(readFileSync(path.join(...parts), "utf8"));
    } catch {
      return undefined;
    }
  }

  /** `service.namespace`, or `host.service.namespace` of a Pod behind a headless Service. */
  function named(labels, dir = all) {
    if (labels.length < 1 || labels.length > 3 || !labels.every((each) => label.test(each))) return;
    if (dir === own) labels = [...labels, path.basename(own)];
    if (labels.length === 2) return read(all, labels[1], `${labels[0]}.json`);
    if (labels.length !== 3) return;
    const addresses = read(all, labels[2], `${labels[1]}.json`)?.hosts?.[labels[0]];
    return addresses && { addresses };
  }

  function serviceOfName(name) {
    const isAbsolute = name.endsWith(".");
    const bare = isAbsolute ? name.slice(0, -1) : name;
    if (bare === "localhost") return;
    if (bare.endsWith(full)) return named(bare.slice(0, -full.length).split("."));
    const labels = bare.split(".");
    if (isAbsolute || labels.length > maxSearched) return;
    return (
      (labels.length < 3 && named(labels, own)) ||
      (labels.length > 1 && named(labels)) ||
      (labels.at(-1) === "svc" && named(labels.slice(0, -1))) ||
      undefined
    );
  }

  /** The file of a Service, or `{ alias }`, another name; undefined for what is no Service. */
  function serviceOf(host) {
    if (typeof host !== "string" || host.length > 253 || !isPlaced()) return;
    if (net.isIP(host) !== 0)
      return host.startsWith("10.96.") ? read(all, "..", "addresses", `${host}.json`) : undefined;
    let alias;
    for (let depth = 0; depth < maxAliases; depth++) {
      const service = serviceOfName((alias ?? host).toLowerCase());
      if (service?.externalName === undefined) return service ?? (alias && { alias });
      alias = service.externalName;
    }
  }

  /** Those of a Service's endpoints that NetworkPolicies let this Pod call. */
  function open(service, endpoints) {
    const { admitted, refused } = service;
    if (!admitted && !refused) return endpoints;
    return endpoints.filter(
      (each) => admitted?.[each]?.includes(self) !== false && !refused?.[each]?.includes(self),
    );
  }

  const any = (list) => list[Math.floor(Math.random() * list.length)];

  /** Where a connection to a Service's port goes; "refused" when nobody answers there. */
  function targetOf(host, port) {
    const service = serviceOf(host);
    if (!service) return;
    if (service.alias) return { host: service.alias, port };
    if (!service.ports) {
      if (service.addresses.length === 0) return;
      const addresses = open(
        service,
        service.addresses.map((each) => `${each}:${port}`),
      );
      if (addresses.length === 0) return { refused: `${service.addresses[0]}:${port}` };
      return { host: any(addresses).split(":")[0], port };
    }
    const endpoints = open(service, service.ports[`${port}/TCP`] ?? []);
    if (endpoints.length === 0) return { refused: `${service.addresses[0]}:${port}` };
    const [address, number] = any(endpoints).split(":");
    return { host: address, port: Number(number) };
  }

  const { connect } = net.Socket.prototype;
  net.Socket.prototype.connect = function (...args) {
    // From net.connect and http: one list, marked as such, of options and callback.
    const isList = Array.isArray(args[0]);
    const first = isList ? args[0][0] : args[0];
    const options = typeof first === "object" ? first : { port: first, host: args[1] };
    if (!options || options.path || typeof options.host !== "string")
      return connect.apply(this, args);
    const target = targetOf(options.host, Number(options.port));
    if (!target) return connect.apply(this, args);
    if (target.refused) {
      const error = new Error(`connect ECONNREFUSED ${target.refused}`);
      const [address, port] = target.refused.split(":");
      Object.assign(error, {
        code: "ECONNREFUSED",
        errno: -111,
        syscall: "connect",
        address,
        port: Number(port),
      });
      process.nextTick(() => this.destroy(error));
      return this;
    }
    const changed = { ...options, ...target };
    if (isList) args[0][0] = changed;
    else if (options === first) args[0] = changed;
    else args = [changed, ...args.filter((each) => typeof each === "function")];
    return connect.apply(this, args);
  };

  /** What a lookup answers; undefined when it is the system's to answer. */
  function found(host, family) {
    if (family === 6 || net.isIP(host)) return;
    const { addresses = [], alias } = serviceOf(host) ?? {};
    if (alias) return { alias };
    return addresses.length > 0
      ? { list: addresses.map((address) => ({ address, family: 4 })) }
      : undefined;
  }

  const { lookup } = dns;
  dns.lookup = function (host, options, callback = options) {
    const given = typeof options === "number" ? { family: options } : (options ?? {});
    const answer = typeof callback === "function" ? found(host, given.family) : undefined;
    if (!answer) return lookup.apply(this, arguments);
    if (answer.alias)
      return lookup.call(this, answer.alias, given === callback ? {} : given, callback);
    process.nextTick(() => {
      if (given.all) callback(null, answer.list);
      else callback(null, answer.list[0].address, 4);
    });
    return {};
  };
  const later = dns.promises.lookup;
  dns.promises.lookup = async function (host, options) {
    const given = typeof options === "number" ? { family: options } : (options ?? {});
    const answer = found(host, given.family);
    if (!answer) return later.call(this, host, options);
    if (answer.alias) return later.call(this, answer.alias, options);
    return given.all ? answer.list : answer.list[0];
  };
  require("node:module").syncBuiltinESMExports();
}

const isWanted = process.env.SPRY_SERVICES || process.env.SPRY_WARM_FD;
if (isWanted && !globalThis[installed]) {
  Object.defineProperty(globalThis, installed, { value: true });
  install();
}
