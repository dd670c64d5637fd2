package servicecenter

import "fmt"

// Error is the body of an answer that is not a success.
type Error struct {
	Code    Code   `json:"errorCode,string"`
	Message string `json:"errorMessage,omitempty"`
	Detail  string `json:"detail,omitempty"`
}

// Code is the number of an error; its first three digits are the HTTP status.
type Code int

// The codes that the stand-in answers with.
const (
	Invalid         Code = 400001
	ServiceExists   Code = 400010
	NoService       Code = 400012
	HasInstances    Code = 400013
	NoInstance      Code = 400017
	DependedOn      Code = 400023
	Unauthorized    Code = 401201
	WrongPassword   Code = 401202
	NoAuthorization Code = 401204
	TokenExpired    Code = 401205
	Forbidden       Code = 403001
	AccountLocked   Code = 403201
	Internal        Code = 500003
	BackendDown     Code = 500011
)

func (c Code) status() int { return int(c) / 1000 }

func (c Code) message() string {
	switch c {
	case Invalid:
		return "Invalid parameter(s)"
	case ServiceExists:
		return "Micro-service already exists"
	case NoService:
		return "Micro-service does not exist"
	case HasInstances:
		return "Micro-service has deployed instance(s)"
	case NoInstance:
		return "Instance does not exist"
	case DependedOn:
		return "Consumer(s) depends on this micro-service"
	case Unauthorized:
		return "Request unauthorized"
	case WrongPassword:
		return "User name or password is wrong"
	case NoAuthorization:
		return "No authorization header"
	case TokenExpired:
		return "Token is expired"
	case Forbidden:
		return "Forbidden"
	case AccountLocked:
		return "Account blocked"
	case BackendDown:
		return "Registry service is unavailable"
	default:
		return "Internal server error"
	}
}

func (e *Error) Error() string {
	if e.Detail == "" {
		return e.Message
	}
	return e.Message + "(" + e.Detail + ")"
}

func reject(code Code, format string, args ...any) *Error {
	return &Error{code, code.message(), fmt.Sprintf(format, args...)}
}
