/**
 * Keys, checked values, metrics, named threads and the I/O engine of a store of files. A configuration goes in,
 * records of checked values come out. It touches no file.
 */
package ucm.store.file.config;
