import { type Case } from "../step.ts";
import { access } from "./access.ts";
import { registrations } from "./api-services.ts";
import { conversions } from "./admission/conversions.ts";
import { limits } from "./admission/limits.ts";
import { policies } from "./admission/policies.ts";
import { podSecurity } from "./admission/pod-security.ts";
import { priorities } from "./admission/priorities.ts";
import { quotas } from "./admission/quotas.ts";
import { webhooks } from "./admission/webhooks.ts";
import { customResources } from "./custom-resources.ts";
import { generated } from "./generated.ts";
import { lifecycles } from "./lifecycle.ts";
import { numberCases } from "./numbers.ts";
import { reads } from "./reads.ts";
import { validations } from "./validation.ts";
import { appliedStatuses } from "./status-apply.ts";
import { nodePorts, warned } from "./warnings.ts";
import { writes } from "./writes.ts";

export const cases: Case[] = [
  ...lifecycles,
  ...writes,
  ...reads,
  ...customResources,
  ...validations,
  ...generated,
  ...limits,
  ...quotas,
  ...conversions,
  ...priorities,
  ...policies,
  ...podSecurity,
  ...webhooks,
  ...access,
  ...warned,
  ...nodePorts,
  ...registrations,
  ...appliedStatuses,
  ...numberCases,
];
