/**
 * Hit curves of LRU for every capacity, exact from stack distances or sampled (SHARDS, FAST '15),
 * and the quantiles beside them. Requests go in, curves come out. It knows no other policy.
 */
package ucm.lite.curve;
