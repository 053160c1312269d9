export {
  type DeliverySpec,
  type Subscription,
  type SubscriptionCondition,
  type SubscriptionFilter,
  subscriptions,
  type SubscriptionSpec,
  type SubscriptionStatus,
} from "./subscription.ts";
