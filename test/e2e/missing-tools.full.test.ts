/** A platform starts without each of the programs that a stronger sandbox needs. */
import { describeMissing } from "../support/missing-tools.ts";

describeMissing([
  {
    lacks: ["nft"],
    args: ["--sandbox=oci"],
    says: /oci: [^]*share this machine's network, Functions know no Service by its name, and NetworkPolicies are not kept, because nft is missing: install\s+nftables/,
    node: /^oci:/,
    hasNames: false,
  },
  {
    lacks: ["ip"],
    says: /process: [^]*ip is missing: install iproute2/,
    node: /^process:/,
    hasNames: true,
  },
  {
    lacks: ["runc", "crun"],
    says: /process: [^]*oci, cannot be used: /,
    node: /^process:/,
    hasNames: true,
  },
]);
