/**
 * Finds stores, block hashings and health checks: in the boot layer and in one module layer for
 * each plugin jar. Folders go in, entries and problems come out. It runs code of a plugin only
 * where a name is asked for, and bounded.
 */
package ucm.pipeline.catalog;
