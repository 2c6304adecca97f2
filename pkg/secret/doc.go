// Package secret keeps values that nobody may read where they would be stored or shown: the values of NoEcho
// parameters, and what dynamic references resolve to.
//
// In the room are the run vault (Vault, sealed by a Sealer), the handle expressions that stand for its contents
// in a run's files (Handle), the places in a template that derive from secret parameters (Walk), masking by value
// and by position (Redactor, Mask), and the sources that resolve {{resolve:…}} (Source, Resolver). What is done
// with them, and when, is the engine's matter.
package secret
