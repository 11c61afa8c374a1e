/**
 * Keys of a configuration, and a store's view of it: typed values, ranges, defaults, problems. A
 * store declares keys and reads values. It does not know where the values came from.
 */
package ucm.api.config;
