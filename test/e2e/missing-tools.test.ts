/** Debian with runc and without nftables, as after `apt install runc`. */
import { describeMissing } from "../support/missing-tools.ts";

describeMissing([
  {
    lacks: ["nft"],
    says: /process: [^]*oci, cannot be used: Pods would have no networks of their own: nft is missing: install nftables/,
    node: /^process:/,
    hasNames: true,
  },
]);
