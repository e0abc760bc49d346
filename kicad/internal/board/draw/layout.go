// SPDX-License-Identifier: Apache-2.0

package main

// drawBoard places the parts and lays the tracks. Places are in millimetres.
func drawBoard(lib *library, parts []part) (node, error) {
	b := newPCB(lib, parts)
	placeParts(b)
	routeSupply(b)
	routeGround(b)
	routeSignals(b)
	b.outline(mm(100, 80), mm(146, 106))
	b.print("beacon "+revision, mm(107, 103.5), "")
	b.print("+", mm(100.9, 90), "")
	b.print("-", mm(100.9, 92), "")
	b.print("UPDI", mm(130.54, 81), "")
	for i, s := range []string{"3V3", "SDA", "SCL", "GND"} {
		b.print(s, b.pad("J2."+string(rune('1'+i))).add(mm(-1.7, 0)), "right")
	}
	return b.node()
}

func placeParts(b *pcb) {
	b.place("J1", mm(105, 90), 270, mm(-1, -3.5))
	b.place("C1", mm(109.5, 90.95), 270, mm(0, -2.75))
	b.place("U1", mm(113.5, 90), 180, mm(0, -2.6))
	b.place("C2", mm(117.5, 90), 270, mm(0, -2.75))
	b.place("R1", mm(120.5, 84), 180, mm(0, -1.6))
	b.place("D1", mm(116, 84), 0, mm(0, -1.6))
	b.place("C3", mm(119.5, 93), 90, mm(-1.8, 0))
	b.place("U2", mm(124, 93), 90, mm(4, 0))
	b.place("SW1", mm(126, 99.8), 0, mm(-4, 0))
	b.place("R2", mm(132, 97.5), 90, mm(1.9, 0))
	b.place("R3", mm(134, 93.2), 90, mm(-1.9, 0))
	b.place("J2", mm(142, 97), 180, mm(0, 2.5))
	b.place("J3", mm(128, 83.5), 90, mm(-2.9, 0))
}

func routeSupply(b *pcb) {
	b.track("/VIN", front, strong, b.pad("J1.1"), b.pad("C1.1"), b.pad("U1.3"))

	top, bottom := mm(119.5, 89.05), mm(119.5, 96.5)
	b.track("+3V3", front, strong, b.pad("U1.2"), b.pad("C2.1"), top)
	b.via("+3V3", top)
	b.track("+3V3", back, strong, bottom, top, mm(119.5, 87.5), mm(123.5, 83.5), b.pad("J3.1"))
	b.via("+3V3", bottom)
	b.track("+3V3", front, strong, b.pad("C3.1"), mm(119.5, 95.475), bottom, mm(119.5, 101.5), mm(121, 103), mm(132, 103), mm(136, 103), b.pad("J2.1"))
	b.track("+3V3", front, strong, b.pad("U2.1"), mm(119.5, 95.475))
	b.track("+3V3", front, signal, b.pad("R2.1"), mm(132, 103))
	bus := mm(135.6, 94.025)
	b.track("+3V3", front, signal, b.pad("R3.1"), bus)
	b.via("+3V3", bus)
	b.track("+3V3", back, signal, bus, mm(139.025, 94.025), b.pad("J2.1"))
}

func routeGround(b *pcb) {
	led := mm(112, 92)
	b.track("GND", front, strong, b.pad("J1.2"), mm(109.5, 92), led, mm(113.3875, 92), b.pad("U1.1"), b.pad("C2.2"),
		mm(119.5, 90.95), mm(121.67, 90.95), b.pad("U2.8"))
	b.track("GND", front, strong, mm(119.5, 90.95), b.pad("C3.2"))

	b.via("GND", led)
	b.track("GND", back, strong, led, mm(112, 84))
	b.via("GND", mm(112, 84))
	b.track("GND", front, strong, mm(112, 84), b.pad("D1.1"))

	middle, button := mm(124, 93), mm(129.2, 99.8)
	b.track("GND", front, strong, b.pad("U2.8"), mm(122.095, 93), middle)
	b.via("GND", middle)
	b.track("GND", back, strong, middle, mm(133.08, 83.92), b.pad("J3.3"))
	b.track("GND", back, strong, middle, mm(124, 94.6), button)
	b.via("GND", button)
	b.track("GND", front, strong, button, b.pad("SW1.2"))
	b.track("GND", front, strong, b.pad("J3.3"), mm(136.12, 83.5), b.pad("J2.4"))
}

func routeSignals(b *pcb) {
	b.track("/STATUS", front, signal, b.pad("U2.7"), mm(123.365, 86.04), b.pad("R1.1"))
	b.track("/LED_A", front, signal, b.pad("R1.2"), b.pad("D1.2"))
	b.track("/MCU/UPDI", front, signal, b.pad("U2.6"), mm(124.635, 88), mm(127.135, 85.5), mm(128.54, 85.5), b.pad("J3.2"))
	b.track("/MCU/BUTTON", front, signal, b.pad("U2.3"), mm(124.635, 99.465), b.pad("SW1.1"))
	b.track("I2C_SCL", front, signal, b.pad("U2.5"), mm(126.9, 90.525), mm(128.295, 91.92), mm(134, 91.92), b.pad("J2.3"))
	b.track("I2C_SCL", front, signal, mm(134, 91.92), b.pad("R3.2"))
	b.track("I2C_SDA", front, signal, b.pad("U2.4"), mm(132, 95.475), mm(140.985, 95.475), b.pad("J2.2"))
	b.track("I2C_SDA", front, signal, mm(132, 95.475), b.pad("R2.2"))
}
