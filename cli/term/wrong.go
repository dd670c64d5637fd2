package term

import "errors"

// wrong is an error of the checked object, not of the command's use.
type wrong struct{ error }

// Unwrap serves [errors.As].
func (w wrong) Unwrap() error { return w.error }

// Wrong marks an error of the checked object. Other errors of a command are wrong usage.
func Wrong(err error) error { return wrong{err} }

// IsWrong reports whether an error, or an error that it wraps, is marked by [Wrong].
func IsWrong(err error) bool {
	_, is := errors.AsType[wrong](err)
	return is
}
