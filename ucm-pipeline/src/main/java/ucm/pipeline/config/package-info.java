/**
 * The operator's configuration: shape, known keys, checks with line numbers, what is in effect,
 * and the generated page of keys. YAML goes in, checked values and findings come out. It opens no
 * store.
 */
package ucm.pipeline.config;
