/**
 * Keys, checked values and host memory of the cache. A configuration goes in, a {@link
 * ucm.store.cache.config.CacheConfig} and memory come out. It moves no bytes.
 */
package ucm.store.cache.config;
