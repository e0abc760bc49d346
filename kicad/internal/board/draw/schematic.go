// SPDX-License-Identifier: Apache-2.0

package main

// drawRoot is the first page: supply on top, light, button and the way to the
// microcontroller below. Places are in grid steps.
func drawRoot(lib *library, parts []part) (node, error) {
	s := newSheet(lib, parts, project, "/"+id(project), "Beacon: supply, light and button", "1")
	drawSupply(s)
	drawSensor(s)
	drawInterface(s)
	s.note("Supply 3.6 V to 6.0 V (U1 takes 6.0 V at most).", at(44, 38))
	s.note("SW1 has no pull-up on the board: the firmware turns on the one of U2.", at(60, 100))
	return s.node()
}

func drawSupply(s *sheet) {
	const rail, floor = 48, 58
	s.place("J1", at(48, rail), pose{mirror: true, ref: mark{0, -3.81, ""}, val: mark{0, 6.35, ""}})
	s.place("C1", at(72, rail+4), upright())
	s.place("U1", at(86, rail), pose{ref: mark{0, -6.35, ""}, val: mark{0, -3.81, ""}})
	s.place("C2", at(100, rail+4), upright())
	s.power("#FLG01", "power:PWR_FLAG", at(66, rail), driven())
	s.power("#FLG02", "power:PWR_FLAG", at(64, floor), driven())
	s.power("#PWR01", "power:+3V3", at(108, rail-2), supply())
	s.power("#PWR02", "power:GND", at(86, floor+2), ground())

	s.wire(s.pin("J1.1"), at(72, rail), s.pin("U1.3"))
	s.label("VIN", at(55, rail))
	s.wire(s.pin("C1.1"), at(72, rail))
	s.wire(s.pin("U1.2"), at(100, rail), at(108, rail))
	s.wire(s.pin("C2.1"), at(100, rail))
	s.wire(s.pin("#PWR01.1"), at(108, rail))

	s.wire(s.pin("J1.2"), at(56, rail+2), at(56, floor), at(86, floor), at(100, floor))
	s.wire(s.pin("C1.2"), at(72, floor))
	s.wire(s.pin("U1.1"), s.pin("#PWR02.1"))
	s.wire(s.pin("C2.2"), at(100, floor))
}

// drawSensor ends the supply rails in the sensor's header.
func drawSensor(s *sheet) {
	const rail, floor = 48, 58
	s.place("J2", at(148, rail+2), pose{ref: mark{0, -5.08, ""}, val: mark{0, 7.62, ""}})
	s.wire(at(108, rail), s.pin("J2.1"))
	s.wire(at(136, rail+2), s.pin("J2.2"))
	s.global("I2C_SDA", at(136, rail+2), true)
	s.wire(at(136, rail+4), s.pin("J2.3"))
	s.global("I2C_SCL", at(136, rail+4), true)
	s.wire(s.pin("J2.4"), at(140, rail+6), at(140, floor), at(100, floor))
}

// drawInterface has the child sheet and what its two pins lead to.
func drawInterface(s *sheet) {
	s.child(at(60, 76), at(26, 18),
		sheetPin{"STATUS", "output", 4 * grid}, sheetPin{"BUTTON", "input", 14 * grid})
	s.place("R1", at(110, 80), pose{turn: 90, ref: mark{0, -3.175, ""}, val: mark{0, 2.54, ""}})
	s.place("D1", at(126, 80), pose{turn: 180, ref: mark{0, -3.175, ""}, val: mark{0, 3.175, ""}})
	s.place("SW1", at(110, 90), pose{ref: mark{0, -3.81, ""}, val: mark{0, 2.54, ""}})
	s.power("#PWR03", "power:GND", at(134, 92), ground())

	s.wire(s.pin("MCU.STATUS"), s.pin("R1.1"))
	s.label("STATUS", at(92, 80))
	s.wire(s.pin("R1.2"), s.pin("D1.2"))
	s.label("LED_A", at(115, 80))
	s.wire(s.pin("D1.1"), at(134, 80), at(134, 90), s.pin("#PWR03.1"))
	s.wire(s.pin("MCU.BUTTON"), s.pin("SW1.1"))
	s.wire(s.pin("SW1.2"), at(134, 90))
}

// drawMCU is the second page: the microcontroller, its bus and its programming
// header.
func drawMCU(lib *library, parts []part) (node, error) {
	root := id(project)
	s := newSheet(lib, parts, project+"/mcu", "/"+root+"/"+id(project+"/"+childName), "Beacon: microcontroller", "2")
	drawController(s)
	drawBus(s)
	drawProgramming(s)
	return s.node()
}

// Rails of the child page.
const (
	mcuRail   = 46
	mcuGround = 84
)

func drawController(s *sheet) {
	s.place("U2", at(112, 64), pose{ref: mark{-12.7, -13.97, "left bottom"}, val: mark{1.27, 13.97, "left top"}})
	s.place("C3", at(90, 64), upright())
	s.power("#PWR04", "power:+3V3", at(112, mcuRail-2), supply())
	s.power("#PWR05", "power:GND", at(112, mcuGround+2), ground())

	s.wire(s.pin("#PWR04.1"), at(112, mcuRail), s.pin("U2.1"))
	s.wire(s.pin("U2.8"), at(112, mcuGround), s.pin("#PWR05.1"))
	s.wire(at(90, mcuRail), at(112, mcuRail))
	s.wire(at(90, mcuRail), s.pin("C3.1"))
	s.wire(s.pin("C3.2"), at(90, mcuGround))
	s.wire(at(90, mcuGround), at(112, mcuGround))

	s.noConnect(s.pin("U2.2"))
	s.wire(s.pin("U2.7"), at(160, 64))
	s.hierarchical("STATUS", "output", at(160, 64))
	s.wire(s.pin("U2.3"), at(160, 68))
	s.hierarchical("BUTTON", "input", at(160, 68))
}

func drawBus(s *sheet) {
	s.place("R2", at(140, 52), upright())
	s.place("R3", at(150, 52), upright())
	s.wire(at(112, mcuRail), at(140, mcuRail), at(150, mcuRail), s.pin("R3.1"))
	s.wire(at(140, mcuRail), s.pin("R2.1"))

	s.wire(s.pin("U2.4"), at(140, 60), at(160, 60))
	s.wire(s.pin("R2.2"), at(140, 60))
	s.global("I2C_SDA", at(160, 60), false)
	s.wire(s.pin("U2.5"), at(150, 62), at(160, 62))
	s.wire(s.pin("R3.2"), at(150, 62))
	s.global("I2C_SCL", at(160, 62), false)
}

func drawProgramming(s *sheet) {
	s.place("J3", at(56, 64), pose{mirror: true, ref: mark{0, -5.08, ""}, val: mark{0, 6.35, ""}})
	s.wire(s.pin("J3.1"), at(68, 62), at(68, mcuRail), at(90, mcuRail))
	s.wire(s.pin("J3.2"), at(78, 64))
	s.endLabel("UPDI", at(78, 64))
	s.wire(s.pin("J3.3"), at(68, 66), at(68, mcuGround), at(90, mcuGround))
	s.wire(s.pin("U2.6"), at(132, 58))
	s.endLabel("UPDI", at(132, 58))
}
