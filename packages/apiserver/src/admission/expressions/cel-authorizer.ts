import { type Environment } from "@marcbachmann/cel-js";
import { type Attributes, type ResourceAttributes } from "../../authorization/attributes.ts";
import { type Decision } from "../../authorization/authorizer.ts";
import { type UserInfo } from "../../request.ts";
import { type AdmissionAttributes, nameOf } from "../attributes.ts";

/** Who says what a user may do. */
export interface Decider {
  decide(attributes: Attributes): Decision;
}

class CelAuthorizer {
  readonly decider: Decider;
  readonly user: UserInfo;
  readonly own: Omit<ResourceAttributes, "user" | "verb">;

  constructor(decider: Decider, user: UserInfo, own: CelAuthorizer["own"]) {
    this.decider = decider;
    this.user = user;
    this.own = own;
  }

  get requestResource(): CelResourceCheck {
    return new CelResourceCheck(this, this.own);
  }
}

class CelPathCheck {
  readonly authorizer: CelAuthorizer;
  readonly path: string;

  constructor(authorizer: CelAuthorizer, path: string) {
    this.authorizer = authorizer;
    this.path = path;
  }
}

class CelGroupCheck {
  readonly authorizer: CelAuthorizer;
  readonly group: string;

  constructor(authorizer: CelAuthorizer, group: string) {
    this.authorizer = authorizer;
    this.group = group;
  }
}

class CelResourceCheck {
  readonly authorizer: CelAuthorizer;
  readonly about: CelAuthorizer["own"];

  constructor(authorizer: CelAuthorizer, about: CelAuthorizer["own"]) {
    this.authorizer = authorizer;
    this.about = about;
  }

  with(change: Partial<CelAuthorizer["own"]>): CelResourceCheck {
    return new CelResourceCheck(this.authorizer, { ...this.about, ...change });
  }
}

class CelDecision {
  readonly decision: Decision;

  constructor(decision: Decision) {
    this.decision = decision;
  }
}

/** `authorizer` for the user of a request. */
export function celAuthorizer(decider: Decider, attributes: AdmissionAttributes): unknown {
  const { type, subresource, namespace, user } = attributes.request;
  const { group, plural: resource } = type;
  const own = { group, resource, subresource, namespace, name: nameOf(attributes) };
  return new CelAuthorizer(decider, user, own);
}

/** `k8s.io/apiserver/pkg/cel/library/authz.go`. */
export function registerAuthorizer(environment: Environment): void {
  const authorizer = "kubernetes.authorization.Authorizer";
  const path = "kubernetes.authorization.PathCheck";
  const group = "kubernetes.authorization.GroupCheck";
  const resource = "kubernetes.authorization.ResourceCheck";
  const decision = "kubernetes.authorization.Decision";
  environment.registerType(authorizer, CelAuthorizer);
  environment.registerType(path, CelPathCheck);
  environment.registerType(group, CelGroupCheck);
  environment.registerType(resource, CelResourceCheck);
  environment.registerType(decision, CelDecision);
  const functions: [string, (...args: never[]) => unknown][] = [
    [
      `${authorizer}.path(string): ${path}`,
      (self: CelAuthorizer, to: string) => new CelPathCheck(self, to),
    ],
    [
      `${authorizer}.group(string): ${group}`,
      (self: CelAuthorizer, name: string) => new CelGroupCheck(self, name),
    ],
    [
      `${authorizer}.serviceAccount(string, string): ${authorizer}`,
      (self: CelAuthorizer, namespace: string, name: string) =>
        new CelAuthorizer(self.decider, accountUser(namespace, name), self.own),
    ],
    [
      `${group}.resource(string): ${resource}`,
      (self: CelGroupCheck, name: string) =>
        new CelResourceCheck(self.authorizer, {
          group: self.group,
          resource: name,
          subresource: "",
          namespace: "",
          name: "",
        }),
    ],
    [
      `${resource}.subresource(string): ${resource}`,
      (self: CelResourceCheck, subresource: string) => self.with({ subresource }),
    ],
    [
      `${resource}.namespace(string): ${resource}`,
      (self: CelResourceCheck, namespace: string) => self.with({ namespace }),
    ],
    [
      `${resource}.name(string): ${resource}`,
      (self: CelResourceCheck, name: string) => self.with({ name }),
    ],
    [
      `${path}.check(string): ${decision}`,
      ({ authorizer: { decider, user }, path: to }: CelPathCheck, verb: string) =>
        new CelDecision(decider.decide({ user, verb, path: to })),
    ],
    [
      `${resource}.check(string): ${decision}`,
      ({ authorizer: { decider, user }, about }: CelResourceCheck, verb: string) =>
        new CelDecision(decider.decide({ user, verb, ...about })),
    ],
    [`${decision}.allowed(): bool`, (self: CelDecision) => self.decision.allowed],
    [`${decision}.reason(): string`, (self: CelDecision) => self.decision.reason],
    [`${decision}.errored(): bool`, () => false],
    [`${decision}.error(): string`, () => ""],
  ];
  for (const [signature, handler] of functions) {
    environment.registerFunction(signature, handler as (...args: unknown[]) => unknown);
  }
}

function accountUser(namespace: string, name: string): UserInfo {
  return {
    name: `system:serviceaccount:${namespace}:${name}`,
    groups: [
      "system:serviceaccounts",
      `system:serviceaccounts:${namespace}`,
      "system:authenticated",
    ],
  };
}
