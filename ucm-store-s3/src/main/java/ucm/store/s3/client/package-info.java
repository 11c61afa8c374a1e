/**
 * Objects of a bucket: requests go in, each of which ends in an answer or in a sentence that says why there
 * is none; and lists of objects. It knows neither blocks nor shards.
 */
package ucm.store.s3.client;
