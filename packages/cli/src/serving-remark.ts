import { type Remarks } from "@spry/controller";
import { type Ownership } from "@spry/serving";

/** Says in the Serverless object's status that Knative Services are another installation's to serve. */
export function remarkOwnership(remarks: Remarks, ownership: Ownership): void {
  const foreign = "Knative Serving is installed by another party: Knative Services are left to it";
  remarks.set("serving", ownership === "foreign" ? foreign : undefined);
}
