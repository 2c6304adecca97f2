package state

import "encoding/json"

// Every type below keeps the members that it does not know, so that a file written by a newer version of
// either tool loses nothing when it is rewritten. The named copies have the fields without the methods.
type (
	plainSidecar            Sidecar
	plainGeneration         Generation
	plainOldHalf            OldHalf
	plainJournal            Journal
	plainSegment            Segment
	plainCompletedOperation CompletedOperation
	plainFailedOperation    FailedOperation
	plainExportsIndex       ExportsIndex
	plainExport             Export
	plainDeploymentEvent    DeploymentEvent
	plainDeploymentRun      DeploymentRun
	plainDeploymentIndex    DeploymentIndex
)

// MarshalJSON implements json.Marshaler.
func (v Sidecar) MarshalJSON() ([]byte, error) { return withExtra(plainSidecar(v), v.Extra) }

// UnmarshalJSON implements json.Unmarshaler.
func (v *Sidecar) UnmarshalJSON(data []byte) (err error) {
	v.Extra, err = intoWithExtra(data, (*plainSidecar)(v))
	return err
}

// MarshalJSON implements json.Marshaler.
func (v Generation) MarshalJSON() ([]byte, error) { return withExtra(plainGeneration(v), v.Extra) }

// UnmarshalJSON implements json.Unmarshaler.
func (v *Generation) UnmarshalJSON(data []byte) (err error) {
	v.Extra, err = intoWithExtra(data, (*plainGeneration)(v))
	return err
}

// MarshalJSON implements json.Marshaler.
func (v OldHalf) MarshalJSON() ([]byte, error) { return withExtra(plainOldHalf(v), v.Extra) }

// UnmarshalJSON implements json.Unmarshaler.
func (v *OldHalf) UnmarshalJSON(data []byte) (err error) {
	v.Extra, err = intoWithExtra(data, (*plainOldHalf)(v))
	return err
}

// MarshalJSON implements json.Marshaler.
func (v Journal) MarshalJSON() ([]byte, error) { return withExtra(plainJournal(v), v.Extra) }

// UnmarshalJSON implements json.Unmarshaler.
func (v *Journal) UnmarshalJSON(data []byte) (err error) {
	v.Extra, err = intoWithExtra(data, (*plainJournal)(v))
	return err
}

// MarshalJSON implements json.Marshaler.
func (v Segment) MarshalJSON() ([]byte, error) { return withExtra(plainSegment(v), v.Extra) }

// UnmarshalJSON implements json.Unmarshaler.
func (v *Segment) UnmarshalJSON(data []byte) (err error) {
	v.Extra, err = intoWithExtra(data, (*plainSegment)(v))
	return err
}

// MarshalJSON implements json.Marshaler.
func (v CompletedOperation) MarshalJSON() ([]byte, error) {
	return withExtra(plainCompletedOperation(v), v.Extra)
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *CompletedOperation) UnmarshalJSON(data []byte) (err error) {
	v.Extra, err = intoWithExtra(data, (*plainCompletedOperation)(v))
	return err
}

// MarshalJSON implements json.Marshaler.
func (v FailedOperation) MarshalJSON() ([]byte, error) {
	return withExtra(plainFailedOperation(v), v.Extra)
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *FailedOperation) UnmarshalJSON(data []byte) (err error) {
	v.Extra, err = intoWithExtra(data, (*plainFailedOperation)(v))
	return err
}

// MarshalJSON implements json.Marshaler.
func (v ExportsIndex) MarshalJSON() ([]byte, error) { return withExtra(plainExportsIndex(v), v.Extra) }

// UnmarshalJSON implements json.Unmarshaler.
func (v *ExportsIndex) UnmarshalJSON(data []byte) (err error) {
	v.Extra, err = intoWithExtra(data, (*plainExportsIndex)(v))
	return err
}

// MarshalJSON implements json.Marshaler.
func (v Export) MarshalJSON() ([]byte, error) { return withExtra(plainExport(v), v.Extra) }

// UnmarshalJSON implements json.Unmarshaler.
func (v *Export) UnmarshalJSON(data []byte) (err error) {
	v.Extra, err = intoWithExtra(data, (*plainExport)(v))
	return err
}

// MarshalJSON implements json.Marshaler.
func (v DeploymentEvent) MarshalJSON() ([]byte, error) {
	return withExtra(plainDeploymentEvent(v), v.Extra)
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *DeploymentEvent) UnmarshalJSON(data []byte) (err error) {
	v.Extra, err = intoWithExtra(data, (*plainDeploymentEvent)(v))
	return err
}

// MarshalJSON implements json.Marshaler.
func (v DeploymentRun) MarshalJSON() ([]byte, error) {
	return withExtra(plainDeploymentRun(v), v.Extra)
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *DeploymentRun) UnmarshalJSON(data []byte) (err error) {
	v.Extra, err = intoWithExtra(data, (*plainDeploymentRun)(v))
	return err
}

// MarshalJSON implements json.Marshaler.
func (v DeploymentIndex) MarshalJSON() ([]byte, error) {
	return withExtra(plainDeploymentIndex(v), v.Extra)
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *DeploymentIndex) UnmarshalJSON(data []byte) (err error) {
	v.Extra, err = intoWithExtra(data, (*plainDeploymentIndex)(v))
	return err
}

var (
	_ json.Unmarshaler = (*Sidecar)(nil)
	_ json.Unmarshaler = (*Generation)(nil)
	_ json.Unmarshaler = (*OldHalf)(nil)
	_ json.Unmarshaler = (*Journal)(nil)
	_ json.Unmarshaler = (*Segment)(nil)
	_ json.Unmarshaler = (*CompletedOperation)(nil)
	_ json.Unmarshaler = (*FailedOperation)(nil)
	_ json.Unmarshaler = (*ExportsIndex)(nil)
	_ json.Unmarshaler = (*Export)(nil)
	_ json.Unmarshaler = (*DeploymentEvent)(nil)
	_ json.Unmarshaler = (*DeploymentRun)(nil)
	_ json.Unmarshaler = (*DeploymentIndex)(nil)
)
