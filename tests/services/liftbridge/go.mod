module liftbridge

go 1.25.0

require github.com/liftbridge-io/liftbridge v1.9.0
