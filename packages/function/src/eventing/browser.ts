export {
  type DeliverySpec,
  type Subscription,
  type SubscriptionCondition,
  type SubscriptionFilter,
  subscriptions,
  type SubscriptionSpec,
  type SubscriptionStatus,
} from "./subscription.ts";
export { type Call, type CallResponse, hasEnded } from "./call.ts";
